// The task of polyphonic music on small sets made here and, where STIEFEL_DATA names a folder with them, on the real
// ones.
#include "idx_files.hpp"
#include "music_files.hpp"
#include "task_plugins.hpp"

#include <fmt/format.h>
#include <cmath>
#include <iostream>
#include <map>
#include <set>

using namespace stiefel;
using namespace task_plugins;
using idx_files::Folder;
namespace fs = std::filesystem;

namespace {

constexpr Index keys = 88;

/// Piece i of a split has 4 + 2i frames; frame t of it sounds key t mod 7, key 10 + i + 20·split, and in every second
/// frame key 60.
PianoRoll piece(std::size_t split, std::size_t i) {
  PianoRoll roll(4 + 2 * i);
  for (std::size_t t = 0; t < roll.size(); ++t) roll[t].set(t % 7).set(10 + i + 20 * split).set(60, t % 2 == 0);
  return roll;
}
RollSet small_set(std::size_t training = 7) {
  RollSet rolls;
  for (std::size_t i = 0; i < training; ++i) rolls[0].push_back(piece(0, i));
  for (std::size_t i = 0; i < 3; ++i) rolls[1].push_back(piece(1, i));
  for (std::size_t i = 0; i < 5; ++i) rolls[2].push_back(piece(2, i));
  return rolls;
}
void write_set(const Folder& folder, const std::string& name, const RollSet& rolls = small_set()) {
  idx_files::write(folder.path / name, music_files::Mat{}.set(rolls));
}

template <class S = float>
auto small(const Folder& folder, const std::string& options = "", Index batch = 3, std::uint64_t seed = 1) {
  return make<S>("polyphonic", options, {seed, batch, folder.path.string()});
}

Frame frame_of(std::span<const float> values) {
  Frame frame;
  for (Index k = 0; k < keys; ++k) {
    CHECK((values[k] == 0 || values[k] == 1));
    frame[std::size_t(k)] = values[k] == 1;
  }
  return frame;
}

/// The number of the training piece that a sequence of a batch shows from its beginning; checks every step of it.
std::size_t piece_in(Batch<float>& batch, Index b, std::size_t split) {
  std::size_t i = 0;
  while (!batch.input(0, b)[Index(10 + i + 20 * split)]) ++i;
  const PianoRoll roll = piece(split, i);
  REQUIRE(batch.length(b) == Index(roll.size()) - 1);
  for (std::size_t t = 0; t + 1 < roll.size(); ++t) {
    CHECK(frame_of(batch.input(Index(t), b)) == roll[t]);
    CHECK(frame_of(batch.target(Index(t), b)) == roll[t + 1]);
  }
  return i;
}

std::string refusal(const Folder& folder, const std::string& options = "", Exit code = Exit::data) {
  return refusal_of([&] { return small(folder, options); }, code);
}

}  // namespace

TEST_CASE("frames and the next ones, of pieces of unequal lengths") {
  const Folder folder;
  write_set(folder, "polyphonic/mat/JSB_Chorales.mat");
  const auto task = small(folder);
  const TaskShape shape = task->shape();
  CHECK((shape.input == InputKind::dense && shape.input_size == keys && shape.output_size == keys && !shape.labels));
  CHECK((shape.readout == ReadoutKind::every && shape.steps == 15));
  CHECK((task->batches(Split::train) == 2 && task->batches(Split::validation) == 1 && task->batches(Split::test) == 2));
  Batch<float> batch = batch_of(*task, Split::test, 1);
  REQUIRE((batch.sequences() == 2 && batch.steps() == 11));
  CHECK((piece_in(batch, 0, 2) == 3 && piece_in(batch, 1, 2) == 4));
  Batch<float> validation = batch_of(*task, Split::validation, 0);
  CHECK((validation.sequences() == 3 && validation.steps() == 7));
  for (Index b = 0; b < 3; ++b) CHECK(piece_in(validation, b, 1) == std::size_t(b));
  REQUIRE(task->files().size() == 1);
  CHECK(task->files()[0].name == "polyphonic/JSB_Chorales");
  CHECK(task->files()[0].path == (folder.path / "polyphonic/mat/JSB_Chorales.mat").string());
}

TEST_CASE("every pass shows every training piece once, in another order; fill is pure") {
  const Folder folder;
  write_set(folder, "JSB_Chorales.mat", small_set(6));
  const auto task = small(folder), other = small(folder, "", 3, 2);
  std::vector<std::vector<std::size_t>> passes;
  for (Index pass = 0; pass < 4; ++pass) {
    std::vector<std::size_t> order;
    for (Index i = 0; i < 2; ++i) {
      Batch<float> batch = batch_of(*task, Split::train, 2 * pass + i);
      for (Index b = 0; b < 3; ++b) order.push_back(piece_in(batch, b, 0));
    }
    CHECK(std::set<std::size_t>(order.begin(), order.end()).size() == 6);
    passes.push_back(order);
  }
  CHECK((passes[0] != passes[1] || passes[1] != passes[2]));
  Batch<float> again = batch_of(*task, Split::train, 1);
  for (Index b = 0; b < 3; ++b) CHECK(piece_in(again, b, 0) == passes[0][std::size_t(3 + b)]);
  CHECK((small(folder, "", 10)->batches(Split::train) == 1 &&
         batch_of(*small(folder, "", 10), Split::train, 0).sequences() == 10));
}

TEST_CASE("long training pieces are cut into parts, those of the other splits are not") {
  const Folder folder;
  write_set(folder, "JSB_Chorales.mat", small_set(3));  // of 3, 5 and 7 steps
  const auto task = small(folder, "max_length: 3", 6);
  CHECK((task->batches(Split::train) == 1 && task->shape().steps == 11));
  Batch<float> batch = batch_of(*task, Split::train, 0);
  std::multiset<Index> lengths;
  std::size_t targets = 0;
  for (Index b = 0; b < batch.sequences(); ++b) {
    lengths.insert(batch.length(b));
    for (Index t = 0; t < batch.length(b); ++t) targets += frame_of(batch.target(t, b)).count();
    for (Index t = 1; t < batch.length(b); ++t) CHECK(frame_of(batch.input(t, b)) == frame_of(batch.target(t - 1, b)));
  }
  CHECK(lengths == std::multiset<Index>{1, 2, 3, 3, 3, 3});
  std::size_t all = 0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t t = 1; t < piece(0, i).size(); ++t) all += piece(0, i)[t].count();
  CHECK(targets == all);
  CHECK(batch_of(*task, Split::test, 0).steps() == 11);
}

TEST_CASE("the loss is that of all frames, or the mean over pieces of the means of their frames") {
  const Folder folder;
  write_set(folder, "JSB_Chorales.mat");
  const auto frames = small<double>(folder), sequences = small<double>(folder, "average: sequences");
  const auto names = [](const Task<double>& task) {
    std::string text;
    for (const Metric& metric : task.metrics()) text += metric.name + (metric.higher_is_better ? "+ " : "- ");
    return text;
  };
  CHECK(names(*frames) == "accuracy+ nll_per_frame- ");
  CHECK(names(*sequences) == "accuracy+ nll_per_frame- nll_per_sequence- ");
  Batch<double> batch = batch_of(*sequences, Split::test, 0);
  for (Index b = 0; b < 3; ++b)
    for (Index t = 0; t < batch.length(b); ++t) CHECK(batch.weight(t, b) == 1 / double(batch.length(b)));

  // Logits 0 cost 88 ln 2; a key that is expected everywhere costs more or less by piece.
  Matrix<double> output = Matrix<double>::Zero(keys, 3);
  output.row(5).setConstant(2);
  Matrix<double> wanted = Matrix<double>::Zero(keys, 3);
  wanted(5, 0) = wanted(6, 0) = wanted(6, 1) = 1;
  const std::vector<double> weights = {0.5, 0.25, 0};
  const Targets<double> targets{wanted, {}, weights};
  std::vector<Ratio> ratios(3);
  sequences->measure(output, targets, ratios);
  const double base = 87 * std::log(2.0), right = std::log1p(std::exp(-2.0)), wrong = 2 + right;
  CHECK(ratios[0].sum == 1);     // the key 5 of frame 0
  CHECK(ratios[0].weight == 4);  // and 6 of frame 0, 5 and 6 of frame 1
  CHECK(ratios[1].sum == doctest::Approx(2 * base + right + wrong));
  CHECK(ratios[1].weight == 2);
  CHECK(ratios[2].sum == doctest::Approx(0.75 * base + 0.5 * right + 0.25 * wrong));
  CHECK(ratios[2].weight == 0.75);
  CHECK(sequences->loss(output, targets, mat<double>(nullptr, 0, 0, 0)) == doctest::Approx(ratios[2].sum));
}

TEST_CASE("the baseline is what the training frequencies of the keys reach on the test pieces") {
  const Folder folder;
  write_set(folder, "JSB_Chorales.mat");
  double counts[keys] = {}, frames = 0;
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t t = 1; t < piece(0, i).size(); ++t, ++frames)
      for (Index k = 0; k < keys; ++k) counts[k] += piece(0, i)[t][std::size_t(k)];
  double all = 0, by_piece = 0, test_frames = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    double sum = 0;
    for (std::size_t t = 1; t < piece(2, i).size(); ++t)
      for (Index k = 0; k < keys; ++k) {
        const double p = (counts[k] + 0.01) / (frames + 0.02);
        sum -= std::log(piece(2, i)[t][std::size_t(k)] ? p : 1 - p);
      }
    all += sum;
    by_piece += sum / double(piece(2, i).size() - 1) / 5;
    test_frames += double(piece(2, i).size() - 1);
  }
  const auto task = small<double>(folder), sequences = small<double>(folder, "average: sequences");
  CHECK(task->baseline() == doctest::Approx(all / test_frames).epsilon(1e-12));
  CHECK(sequences->baseline() == doctest::Approx(by_piece).epsilon(1e-12));
  CHECK(trivial_loss(*task, Split::test) == doctest::Approx(task->baseline()).epsilon(1e-9));
  CHECK(trivial_loss(*sequences, Split::test) == doctest::Approx(sequences->baseline()).epsilon(1e-9));

  RollSet without = small_set();
  without[1].clear();
  without[2].clear();
  write_set(folder, "own.mat", without);
  const auto alone = small<double>(folder, "file: own.mat");
  CHECK((alone->batches(Split::validation) == 0 && alone->batches(Split::test) == 0));
  CHECK(std::isfinite(alone->baseline()));
  without[1] = small_set()[1];
  write_set(folder, "own.mat", without);
  const auto untested = small<double>(folder, "file: own.mat");
  CHECK(trivial_loss(*untested, Split::validation) == doctest::Approx(untested->baseline()).epsilon(1e-9));
}

TEST_CASE("places and names under which known sets are found, and files and folders of the user's own") {
  const std::vector<std::pair<std::string, std::string>> places = {
      {"jsb", "polyphonic/mat/JSB_Chorales.mat"},
      {"jsb", "JSB Chorales.mat"},
      {"jsb", "polyphonic/jsb_json/jsb-chorales-quarter.mat"},
      {"piano_midi", "polyphonic/Piano_midi.mat"},
      {"piano_midi", "Piano-midi.de.mat"},
      {"nottingham", "polyphonic/mat/Nottingham.mat"},
      {"musedata", "polyphonic/mat/MuseData.mat"}};
  for (const auto& [set, place] : places) {
    CAPTURE(place);
    const Folder folder;
    write_set(folder, place);
    CHECK(small(folder, "set: " + set)->files()[0].path == (folder.path / place).string());
  }
  const Folder folder;
  RollSet rolls = small_set(3);
  for (auto& pieces : rolls)
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const char* split = roll_split_names[std::size_t(&pieces - rolls.data())];
      idx_files::write(folder.path / "polyphonic/Nottingham" / split / fmt::format("{}.mid", i),
                       music_files::midi_of(pieces[i], 480, 2));
    }
  const auto known = small(folder, "set: nottingham"), own = small(folder, "folder: polyphonic/Nottingham");
  const auto finer = small(folder, "{folder: polyphonic/Nottingham, steps_per_quarter: 4}");
  for (const auto* task : {&known, &own}) {
    Batch<float> batch = batch_of(**task, Split::test, 1);
    CHECK((piece_in(batch, 0, 2) == 3 && piece_in(batch, 1, 2) == 4));
  }
  CHECK((known->shape().steps == 11 && finer->shape().steps == 23));
  const std::filesystem::path piece = folder.path / "polyphonic/Nottingham/test/0.mid",
                              shouted = folder.path / "NEW.MID";
  std::filesystem::copy_file(piece, shouted);
  // New pieces have the time steps of training.
  for (const auto& [options, factor] : {std::pair("{folder: polyphonic/Nottingham}", 1),
                                        {"{folder: polyphonic/Nottingham, steps_per_quarter: 4}", 2}}) {
    const auto reader = open("polyphonic", options, *own, shouted.string());
    Batch<float> batch;
    REQUIRE((reader && reader->next() && reader->read(1000, batch)));
    const Batch<float> known_piece = batch_of(*known, Split::test, 0);
    CHECK(batch.steps() == factor * (known_piece.length(0) + 1));
  }
  REQUIRE(known->files().size() == 11);
  CHECK(known->files()[3].name == "polyphonic/Nottingham/valid/0.mid");
  write_set(folder, "own.mat");
  CHECK(small(folder, "file: own.mat")->shape().steps == 15);
  write_set(folder, "UPPER.MAT");
  const auto reader = open("polyphonic", "", *own, (folder.path / "UPPER.MAT").string());
  CHECK((reader && reader->next()));
  CHECK(small(folder, "file: " + (folder.path / "own.mat").string())->shape().steps == 15);
}

TEST_CASE("missing and unfit files are told of with the mend") {
  const Folder folder;
  const auto says = [&](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const std::string fetch = "Fetch it with: stiefel data fetch polyphonic --data '" + folder.path.string() + "'";
  says(refusal(folder), "polyphonic needs the JSB Chorales, but there is no JSB_Chorales.mat or ");
  says(refusal(folder), fetch);
  says(refusal(folder, "set: musedata"), "there is no MuseData.mat or ");
  try {
    make<float>("polyphonic", "", {1, 1, ""});
    CHECK(false);
  } catch (const Error& error) {
    says(error.what(),
         "the data directory is not set. Use --data DIR or set STIEFEL_DATA. Fetch it with: stiefel data fetch "
         "polyphonic");
  }
  idx_files::write(folder.path / "JSB_Chorales.mat", "damaged");
  says(refusal(folder), "JSB_Chorales.mat: not a MATLAB file: 7 bytes, where the header alone has 128. " + fetch);
  says(refusal(folder, "file: absent.json"),
       "polyphonic: there is no absent.json, and none in " + folder.path.string());
  says(refusal(folder, "folder: absent"), "polyphonic: there is no absent, and none in");
  fs::create_directories(folder.path / "empty");
  says(refusal(folder, "folder: empty"), "empty: cannot read its folder train (No such file or directory).");
  says(refusal(folder, "{file: a.mat, folder: b}", Exit::usage), "give either file or folder, not both");
}

TEST_CASE("the real sets: sequences, predicted frames and baselines") {
  const char* data = std::getenv("STIEFEL_DATA");
  if (!data || !fs::exists(fs::path(data) / "polyphonic")) {
    std::cout << "skipped: real music; STIEFEL_DATA names no folder with polyphonic/\n";
    return;
  }
  struct Known {
    std::array<Index, 3> pieces, frames;
    Index longest;
    double marginal, by_piece;
  };
  const std::map<std::string, Known> all = {
      {"jsb", {{229, 76, 77}, {13578, 4526, 4648}, 160, 11.09, 11.04}},
      {"piano_midi", {{87, 12, 25}, {75824, 8528, 19011}, 3857, 11.05, 11.39}},
      {"nottingham", {{694, 173, 170}, {175867, 45340, 44293}, 1793, 10.26, 10.13}},
      {"musedata", {{524, 135, 124}, {244678, 82620, 64215}, 4273, 11.52, 10.56}}};
  for (const auto& [set, known] : all) {
    CAPTURE(set);
    const auto task = make<float>("polyphonic", "set: " + set, {1, 1, data});
    CHECK(task->shape().steps == known.longest - 1);
    for (const Split split : {Split::train, Split::validation, Split::test}) {
      Index frames = 0;
      for (Index i = 0; i < task->batches(split); ++i) frames += batch_of(*task, split, i).length(0);
      CHECK(task->batches(split) == known.pieces[std::size_t(split)]);
      CHECK(frames == known.frames[std::size_t(split)]);
    }
    CHECK(std::abs(task->baseline() - known.marginal) < 0.005);
    CHECK(std::abs(make<float>("polyphonic", "{average: sequences, set: " + set + "}", {1, 1, data})->baseline() -
                   known.by_piece) < 0.005);
  }
}

TEST_CASE("MIDI files: a step a quarter note for the chorales and two for all others, and how notes are sampled") {
  const Folder folder;
  // In quarter notes: from 0 to 1, from 1 to 2, from 2¼ to 2½, and from 3 to 5.
  using namespace music_files;
  const Bytes events = note_on(0, 60) + note_off(480, 60) + note_on(0, 62) + note_off(480, 62) + note_on(120, 64) +
                       note_off(120, 64) + note_on(240, 65) + note_off(960, 65);
  for (const char* set : {"JSB_Chorales", "Nottingham"})
    for (const char* split : roll_split_names)
      idx_files::write(folder.path / "polyphonic" / set / split / "a.mid", midi_header(0, 1, 480) + track(events));
  CHECK(small(folder, "set: jsb", 1)->shape().steps == 5 - 1);
  CHECK(small(folder, "set: nottingham", 1)->shape().steps == 10 - 1);
  CHECK(small(folder, "folder: polyphonic/JSB_Chorales", 1)->shape().steps == 10 - 1);
  const auto sounds = [&](const char* quantisation) {
    const auto task = small(folder, fmt::format("{{set: jsb, quantisation: {}}}", quantisation), 1);
    return batch_of(*task, Split::test, 0).inputs().row(64 - 21).sum();
  };
  CHECK(sounds("nearest") == 1);
  CHECK(sounds("sampled") == 0);
}
