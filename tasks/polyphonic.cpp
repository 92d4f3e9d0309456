// Polyphonic music: which of the 88 keys of a piano sound next (Boulanger-Lewandowski, Bengio & Vincent 2012).
//
//   A piece is a sequence of frames y_1 … y_T in {0, 1}⁸⁸. At step t the input is y_t, the target y_{t+1}:
//   loss = −Σ_k [y_k ln σ(o_k) + (1 − y_k) ln(1 − σ(o_k))], in nats per frame; a piece of T frames has T − 1 of them.
//   Accuracy of frames (Bay, Ehmann & Downie 2009): Σ TP / Σ (TP + FP + FN), a key being expected to sound where o_k
//     > 0.
//
// Papers average over all frames of a split, or take the mean over pieces of the means of their frames: the option
// `average`. The constant predictor expects each key as often as it sounds in the training frames.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <boost/algorithm/string.hpp>
#include <cmath>

#include <stiefel/held_sequences.hpp>
#include <stiefel/item_batches.hpp>
#include <stiefel/plugin.hpp>
#include "tasks/formats/data_path.hpp"
#include "tasks/formats/roll_set.hpp"

namespace {
using namespace stiefel;

struct PolyphonicOptions {
  std::string set = "jsb", file, folder, quantisation = "nearest", average = "frames";
  Index steps_per_quarter = 0, max_length = 0;

  void describe(Schema& s) {
    s.field("set", set, "JSB Chorales, Piano-midi.de, Nottingham or MuseData, from the data directory")
        .one_of({"jsb", "piano_midi", "nottingham", "musedata"});
    s.field("file", file,
            "instead of a known set, pieces from a file: .json with an object of train, valid and test, each a list of "
            "pieces, lists of "
            "steps, lists of MIDI notes; or .mat with cells traindata, validdata, testdata of steps × 88 matrices");
    s.field("folder", folder, "instead of a known set, a folder with the folders train, valid and test of MIDI files");
    s.field("steps_per_quarter", steps_per_quarter,
            "for MIDI files: time steps per quarter note; 0: 1 for jsb, 2 for all others")
        .at_least(0)
        .at_most(96);
    s.field("quantisation", quantisation,
            "for MIDI files; nearest: notes begin and end at the nearest step and sound for at least one; sampled: a "
            "note sounds at the steps "
            "that begin while it does, which loses short ones, as in the published piano rolls")
        .one_of({"nearest", "sampled"});
    s.field("max_length", max_length,
            "split longer training pieces into parts of at most this many steps, each starting from the initial state; "
            "0: never")
        .at_least(0)
        .units("steps");
    s.field("average", average,
            "frames: mean loss over all frames; sequences: mean over pieces of the means of their frames, a "
            "short piece counting as "
            "much as a long one")
        .one_of({"frames", "sequences"});
    s.check(file.empty() || folder.empty(), "folder", "give either file or folder, not both");
  }
};

struct KnownSet {
  std::string title;
  std::vector<std::string> names;  // of files, without the ending, and of folders
};

KnownSet known_set(const std::string& set) {
  if (set == "jsb") return {"the JSB Chorales", {"JSB_Chorales", "JSB Chorales", "jsb-chorales-quarter"}};
  if (set == "piano_midi") return {"the Piano-midi.de pieces", {"Piano_midi", "Piano-midi.de"}};
  if (set == "nottingham") return {"the Nottingham tunes", {"Nottingham"}};
  return {"the MuseData pieces", {"MuseData"}};
}

MidiGrid grid(const PolyphonicOptions& options) {
  const bool jsb = options.set == "jsb" && options.folder.empty() && options.file.empty();
  return {options.steps_per_quarter > 0 ? options.steps_per_quarter : jsb ? 1 : 2, options.quantisation == "sampled"};
}

RollSet load_folder(const NamedFile& folder, const std::string& name, const PolyphonicOptions& options,
                    std::vector<DataFile>& files) {
  std::vector<std::string> paths;
  RollSet rolls = read_midi_folder(folder, grid(options), paths);
  for (const std::string& path : paths) files.push_back({name + path.substr(folder.path.size()), path});
  return rolls;
}

/// The set's pieces, from the first place that has them: MATLAB files, JSON, then MIDI files.
RollSet load_known(const PolyphonicOptions& options, const std::string& directory, std::vector<DataFile>& files) {
  const KnownSet known = known_set(options.set);
  DataQuery query{"polyphonic",
                  known.title,
                  {"polyphonic/mat", "polyphonic", "polyphonic/jsb_json", "polyphonic/midi", ""},
                  {},
                  "Fetch it with: stiefel data fetch polyphonic --data 'DIR'"};
  DataQuery folders = query;
  folders.names = known.names;
  for (const char* ending : {".mat", ".json"})
    for (const std::string& name : known.names) query.names.push_back(name + ending);
  const std::string mend = mend_of(directory, query), name = "polyphonic/" + known.names.front();
  const std::string folder =
      existing_data_file(directory, query).empty() ? find_data_folder(directory, folders, "train") : "";
  if (!folder.empty()) return load_folder({folder, mend}, name, options, files);
  files.push_back({name, find_data_file(directory, query)});
  return read_roll_file({files.back().path, mend});
}

RollSet load(const PolyphonicOptions& options, const std::string& directory, std::vector<DataFile>& files) {
  if (!options.folder.empty())
    return load_folder({find_own_data(directory, "polyphonic", options.folder), ""}, options.folder, options, files);
  if (options.file.empty()) return load_known(options, directory, files);
  files.push_back({options.file, find_own_data(directory, "polyphonic", options.file)});
  return read_roll_file({files.back().path, ""});
}

constexpr Index keys = Index(Frame().size());

/// Steps first … first + steps − 1 of a piece: input frame t, target frame t + 1.
struct Part {
  const PianoRoll* roll;
  Index first, steps;
};

std::vector<Part> parts_of(const std::vector<PianoRoll>& rolls, Index max_length) {
  std::vector<Part> parts;
  for (const PianoRoll& roll : rolls) {
    const Index steps = Index(roll.size()) - 1, most = max_length > 0 ? max_length : steps;
    for (Index first = 0; first < steps; first += most) parts.push_back({&roll, first, std::min(most, steps - first)});
  }
  return parts;
}

template <class S> class Polyphonic final : public Task<S> {
 public:
  using Options = PolyphonicOptions;
  Polyphonic(const Options& options, const TaskContext& context)
      : Task<S>(context), options_(options), rolls_(load(options, context.data_directory, files_)) {
    for (std::size_t s = 0; s < rolls_.size(); ++s) parts_[s] = parts_of(rolls_[s], s == 0 ? options.max_length : 0);
    batches_ = std::make_unique<ItemBatches>(context.batch, Index(parts_[0].size()), context.seed);
    for (const std::vector<Part>& parts : parts_)
      for (const Part& part : parts) longest_ = std::max(longest_, part.steps);
    find_marginals();
  }

  TaskShape shape() const override {
    return {.input_size = keys,
            .output_size = keys,
            .steps = longest_,
            .training_set = Index(parts_[0].size()),
            .predicts_inputs = true};
  }

  Index batches(Split split) const override { return batches_->count(split, Index(parts(split).size())); }

  void fill(Split split, Index index, Batch<S>& batch) const override {
    batches_->fill(batch, shape(), split, index, parts(split), &Part::steps,
                   [&](const Part& p, Index b) { write(p, batch, b); });
  }

  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override {
    return bernoulli(output, targets, doutput);
  }

  std::vector<Metric> metrics() const override {
    std::vector<Metric> all = {{"accuracy"}, {"nll_per_frame", false, "nat"}};
    if (by_sequences()) all.push_back({"nll_per_sequence", false, "nat"});
    return all;
  }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override {
    std::vector<S> counted;
    for (const S weight : targets.weights) counted.push_back(S(weight > S(0)));
    const Targets<S> frames{targets.values, {}, counted};
    for (Index c = 0; c < output.cols(); ++c) {
      if (counted[static_cast<std::size_t>(c)] == S(0)) continue;
      for (Index k = 0; k < keys; ++k) {
        const bool expected = output(k, c) > S(0), sounds = targets.values(k, c) > S(0);
        metrics[0].sum += expected && sounds;
        metrics[0].weight += expected || sounds;
      }
    }
    metrics[1].sum += bernoulli(output, frames, {});
    metrics[1].weight += total_weight(frames);
    if (!by_sequences()) return;
    metrics[2].sum += bernoulli(output, targets, {});
    metrics[2].weight += total_weight(targets);
  }

  double baseline() const override { return baseline_; }
  void trivial(Index, std::span<S> output) const override {
    for (Index k = 0; k < keys; ++k) output[k] = S(std::log(marginals_[k]) - std::log1p(-marginals_[k]));
  }

  std::vector<DataFile> files() const override { return files_; }

  DataForm form() const override {
    DataForm form;
    form.output = DataForm::Output::sigmoid;
    return form;
  }
  static std::unique_ptr<SequenceReader<S>> open(const Options& options, const Trained& trained,
                                                 const std::string& file) {
    using Sequence = typename HeldSequences<S>::Sequence;
    std::vector<Sequence> sequences;
    const auto add = [&](const std::string& name, const PianoRoll& roll) {
      Sequence& sequence = sequences.emplace_back(Sequence{name, {}, {}});
      for (const Frame& frame : roll)
        for (Index k = 0; k < keys; ++k) sequence.inputs.push_back(S(frame[std::size_t(k)]));
    };
    if (is_midi(file)) {
      const NamedFile named{file, ""};
      add("", roll_of(read_midi(bytes_of(named), named), grid(options), named));
    } else if (boost::iends_with(file, ".mat") || boost::iends_with(file, ".json")) {
      const RollSet rolls = read_roll_file({file, ""});
      for (std::size_t s = 0; s < rolls.size(); ++s)
        for (std::size_t i = 0; i < rolls[s].size(); ++i)
          add(fmt::format("{}/{}", roll_split_names[s], i + 1), rolls[s][i]);
    } else {
      return nullptr;
    }
    return std::make_unique<HeldSequences<S>>(trained.shape, std::move(sequences));
  }

 private:
  const std::vector<Part>& parts(Split split) const { return parts_[std::size_t(split)]; }
  bool by_sequences() const { return options_.average == "sequences"; }
  double weight_of(const Part& part) const { return by_sequences() ? 1 / double(part.steps) : 1; }

  void write(const Part& part, Batch<S>& batch, Index b) const {
    batch.length(b) = part.steps;
    for (Index t = 0; t < part.steps; ++t) {
      const Frame &now = (*part.roll)[part.first + t], &next = (*part.roll)[part.first + t + 1];
      const std::span<S> input = batch.input(t, b), target = batch.target(t, b);
      for (Index k = 0; k < keys; ++k) {
        input[k] = S(now[k]);
        target[k] = S(next[k]);
      }
      batch.weight(t, b) = S(weight_of(part));
    }
  }

  /// Calls f(frame, weight) for every target of a split.
  template <class F> void each_target(Split split, F&& f) const {
    for (const Part& part : parts(split))
      for (Index t = 0; t < part.steps; ++t) f((*part.roll)[part.first + t + 1], weight_of(part));
  }

  /// A hundredth is added to both counts of a key, so that none is impossible.
  void find_marginals() {
    double frames = 0;
    std::array<double, keys> counts{};
    each_target(Split::train, [&](const Frame& frame, double) {
      ++frames;
      for (Index k = 0; k < keys; ++k) counts[k] += frame[k];
    });
    for (Index k = 0; k < keys; ++k) marginals_[k] = (counts[k] + 0.01) / (frames + 0.02);
    double sum = 0, weights = 0;
    each_target(last_split(*this), [&](const Frame& frame, double weight) {
      for (Index k = 0; k < keys; ++k)
        sum -= weight * (frame[k] ? std::log(marginals_[k]) : std::log1p(-marginals_[k]));
      weights += weight;
    });
    baseline_ = sum / weights;
  }

  Options options_;
  std::vector<DataFile> files_;
  RollSet rolls_;
  std::array<std::vector<Part>, 3> parts_;
  std::unique_ptr<ItemBatches> batches_;
  Index longest_ = 0;
  std::array<double, keys> marginals_{};
  double baseline_ = 0;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::task<Polyphonic>("polyphonic",
                                                "piano rolls of polyphonic music, the next frame from those before"))
