// Sounds and their classes: a folder of each class, or a CSV file of names and labels.
//
//   mfcc       26 numbers every 10 ms (signal/mfcc.hpp)
//   log_bands  the logarithms of 26 mel bands every 10 ms (the same)
//   raw        the samples themselves, `samples` a step, the last step filled with 0
#include <algorithm>
#include <filesystem>
#include <numeric>

#include <boost/algorithm/string/predicate.hpp>

#include <stiefel/held_sequences.hpp>
#include "tasks/formats/audio.hpp"
#include "tasks/formats/data_path.hpp"
#include "tasks/formats/inflate.hpp"
#include "tasks/formats/named_file.hpp"
#include "tasks/own_sequences.hpp"
#include "tasks/signal/mfcc.hpp"
#include "tasks/signal/resample.hpp"

namespace {
using namespace stiefel;
namespace fs = std::filesystem;

constexpr const char* mend = "Correct the file, or remove it.";

struct SoundFeatures {
  std::string kind = "mfcc";
  Index rate = 16000, samples = 1;

  Index size() const { return kind == "raw" ? samples : mfcc_features; }
  /// size() × steps
  Eigen::MatrixXd of(const std::string& path) const {
    Audio audio = read_audio(path, mend);
    std::vector<double> x = std::move(audio.samples);
    if (const auto common = std::gcd(audio.rate, std::int64_t(rate)); audio.rate != rate)
      x = resample(x, int(rate / common), int(audio.rate / common));
    if (kind == "raw") {
      x.resize((x.size() + std::size_t(samples) - 1) / std::size_t(samples) * std::size_t(samples));
      return Eigen::Map<const Eigen::MatrixXd>(x.data(), samples, Index(x.size()) / samples);
    }
    const Eigen::MatrixXd features = kind == "mfcc" ? mfcc(x, rate) : log_bands(x, rate);
    if (features.cols() == 0) NamedFile{path, mend}.refuse("shorter than a window of 25 ms");
    return features;
  }
};

struct LabelledSoundsOptions : OwnOptions {
  SoundFeatures sound;
  LabelledSoundsOptions() { kind = "classification", normalisation = "standard"; }

  void describe(Schema& s) {
    s.field("data", data.file,
            "a folder with a folder of sound files for each class, or a CSV file with the columns `file` and `label`");
    s.field("train", train.file, "training sounds (instead of `data`)");
    s.field("validation", validation.file, "validation sounds (with `train`)");
    s.field("test", test.file,
            "test sounds; with `data`, instead of those of `test_fraction`, which are then not used");
    describe_split(s, "sounds");
    s.field("features", sound.kind, "mfcc, logarithms of 26 mel bands, or the samples themselves")
        .one_of({"mfcc", "log_bands", "raw"});
    s.field("rate", sound.rate, "sampling rate to which all sounds are converted")
        .at_least(1000)
        .at_most(192000)
        .units("Hz");
    s.field("samples", sound.samples, "samples of a step")
        .at_least(1)
        .at_most(100000)
        .only_if(sound.kind == "raw", "`features: raw`");
    s.field("normalisation", normalisation,
            "standardize the features by mean and standard deviation of the training sounds")
        .one_of({"none", "standard"});
    describe_scores(s, "accuracy");
  }
};

/// Adds sounds to a set.
class Sounds {
 public:
  Sounds(const SoundFeatures& features, const std::string& source, Classes& classes, std::vector<DataFile>& files)
      : features_(features), source_(source), classes_(classes), files_(files), set_{features.size(), 1, {}, {}} {}

  SequenceSet read(const fs::path& path) {
    fs::is_directory(path) ? read_folder(path) : read_list(path);
    if (set_.sequences.empty()) throw Error(fmt::format("{}: there are no sounds", path.string()), Exit::data);
    return std::move(set_);
  }

 private:
  static std::vector<fs::path> sorted(const fs::path& folder) {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder))
      if (!entry.path().filename().string().starts_with('.')) all.push_back(entry.path());
    std::ranges::sort(all);
    return all;
  }

  void read_folder(const fs::path& folder) {
    for (const fs::path& path : sorted(folder)) {
      if (!fs::is_directory(path)) continue;
      const std::string name = path.filename().string();
      for (const fs::path& file : sorted(path))
        add(file, name + "/" + file.filename().string(), number_of(name, path.string()));
    }
  }

  void read_list(const fs::path& path) {
    files_.push_back({source_, path.string()});
    const std::string text = text_of({path.string(), ""});
    CsvReader reader(text, path.string(), ',');
    const std::size_t file = reader.column("file"), label = reader.column("label");
    for (std::vector<CsvField> row; reader.next(row);) {
      const std::string name = reader.name(row[file], file);
      if (!fs::is_regular_file(path.parent_path() / name))
        reader.refuse(row[file].offset, fmt::format("there is no file {} in {}", shown(name),
                                                    path.has_parent_path() ? path.parent_path().string() : "."));
      add(path.parent_path() / name, name, number_of(reader.name(row[label], label), reader.place(row[label].offset)));
    }
  }

  Index number_of(const std::string& label, const std::string& place) {
    const Index number = classes_.number(label);
    if (number < 0)
      throw Error(fmt::format("{}: no training sound has the class {}{}", place, shown(label), classes_.hint(label)),
                  Exit::data);
    return number;
  }

  void add(const fs::path& path, const std::string& name, Index label) {
    const Eigen::MatrixXd x = features_.of(path.string());
    set_.sequences.push_back({x.cols(), {x.data(), x.data() + x.size()}, {double(label)}, {}});
    files_.push_back({source_ + "/" + name, path.string()});
  }

  const SoundFeatures& features_;
  const std::string& source_;
  Classes& classes_;
  std::vector<DataFile>& files_;
  SequenceSet set_;
};

template <class S> class LabelledSounds final : public OwnSequences<S> {
 public:
  using Options = LabelledSoundsOptions;
  LabelledSounds(const Options& options, const TaskContext& context)
      : OwnSequences<S>(options, context,
                        {"labelled_sounds", "FOLDER",
                         [&](const SequenceSource& source, const SequenceRules&, const std::string& directory,
                             Classes& classes, std::vector<DataFile>& files) {
                           const std::string path = find_own_data(directory, "labelled_sounds", source.file);
                           return Sounds(options.sound, source.file, classes, files).read(path);
                         }}) {}

  /// A sound file.
  static std::unique_ptr<SequenceReader<S>> open(const Options& options, const Trained& trained,
                                                 const std::string& file) {
    const Eigen::MatrixXd features = options.sound.of(file);
    std::vector<double> x(features.data(), features.data() + features.size());
    if (const DataForm& form = trained.form; !form.input_mean.empty())
      Scaling{form.input_mean, form.input_scale}.apply(x);
    using Held = HeldSequences<S>;
    return std::make_unique<Held>(trained.shape, std::vector<typename Held::Sequence>{{"", {x.begin(), x.end()}, {}}});
  }
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::task<LabelledSounds>("labelled_sounds", "classes of your own sounds, from a folder of each"))
