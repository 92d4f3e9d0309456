// Framewise phoneme classification on a part of TIMIT made here and, where STIEFEL_DATA names a folder with it, on the
// real sample.
#include "sound_files.hpp"
#include "task_plugins.hpp"

#include <doctest/doctest.h>
#include <iostream>
#include <set>

using namespace stiefel;
using namespace task_plugins;
using namespace sound_files;
namespace fs = std::filesystem;

namespace {

// Places in the 61 labels and the 39 classes.
constexpr std::int32_t ao = 3, h_sharp = 27, iy = 32, q = 46, aa_folded = 0, iy_folded = 17, sil_folded = 30;

struct Sample : Folder {
  Sample() { write_timit(path / "timit", 6, 5); }
};

template <class S = double> auto task_of(const Folder& folder, const std::string& options = "", Index batch = 10) {
  return make<S>("timit_phonemes", options, {1, batch, folder.path.string()});
}

/// Calls `act` with a batch, a step and a sequence, for every step of a split.
template <class S> void every(const Task<S>& task, Split split, auto act) {
  for (Index i = 0; i < task.batches(split); ++i) {
    Batch<S> batch = batch_of(task, split, i);
    for (Index b = 0; b < batch.sequences(); ++b)
      for (Index t = 0; t < batch.length(b); ++t) act(batch, t, b);
  }
}

std::string refusal(const Folder& folder, const std::string& options = "") {
  return refusal_of([&] { return task_of(folder, options); });
}

}  // namespace

TEST_CASE("windows have the phone at their middle") {
  const Sample sample;
  const auto task = task_of(sample);
  const TaskShape shape = task->shape();
  CHECK((shape.input == InputKind::dense && shape.input_size == 26 && shape.output_size == 61 && shape.labels));
  std::set<std::int32_t> labels;
  every(*task, Split::test, [&](Batch<double>& batch, Index t, Index b) {
    // three phones of a third of the sound each, which has 160 (windows − 1) + 400 samples and up to 159 more
    const Index windows = batch.length(b), middle = 160 * t + 200, least = 160 * (windows - 1) + 400;
    CHECK(batch.weight(t, b) == 1);
    const std::int32_t label = batch.label(t, b);
    if (middle < least / 3) CHECK(label == h_sharp);
    if (middle > (least + 159) * 2 / 3) CHECK(label == iy);
    if (middle > (least + 159) / 3 && middle < least * 2 / 3) CHECK((label == ao || label == q));
    labels.insert(label);
  });
  CHECK(labels == std::set<std::int32_t>{ao, h_sharp, iy, q});
}

TEST_CASE("how the published splits validate does not matter when speakers are divided") {
  const Sample sample;
  CHECK(refusal_of([&] { task_of(sample, "{test: complete, validation: development}"); }, Exit::usage)
            .find("must be held_out with `test: complete`") != std::string::npos);
  CHECK(task_of(sample, "{split: speakers, test_speakers: 2, validation_speakers: 2, validation: development}"));
}

TEST_CASE("folded to 39 classes the glottal stop has no weight") {
  const Sample sample;
  const auto all = task_of(sample), folded = task_of(sample, "classes: 39");
  CHECK(folded->shape().output_size == 39);
  const auto labels = [](const Task<double>& task) {
    std::vector<std::pair<std::int32_t, double>> list;
    every(task, Split::test,
          [&](Batch<double>& batch, Index t, Index b) { list.emplace_back(batch.label(t, b), batch.weight(t, b)); });
    return list;
  };
  const auto before = labels(*all), after = labels(*folded);
  REQUIRE(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::int32_t label = before[i].first;
    CHECK(after[i].second == (label == q ? 0 : 1));
    if (label != q) CHECK(after[i].first == (label == ao ? aa_folded : label == iy ? iy_folded : sil_folded));
  }
}

TEST_CASE("features have the mean 0 and the variance 1 over the training set") {
  const Sample sample;
  const auto task = task_of(sample);
  Eigen::ArrayXd sum = Eigen::ArrayXd::Zero(26), squares = sum;
  double count = 0;
  every(*task, Split::train, [&](Batch<double>& batch, Index t, Index b) {
    const Eigen::Map<Eigen::ArrayXd> x(batch.input(t, b).data(), 26);
    sum += x, squares += x.square(), ++count;
  });
  CHECK((sum / count).abs().maxCoeff() < 1e-6);
  CHECK((squares / count - 1).abs().maxCoeff() < 1e-5);
}

TEST_CASE("shares of the classes reach the baseline; the metric counts wrong windows") {
  const Sample sample;
  for (const char* options : {"classes: 61", "classes: 39"}) {
    CAPTURE(options);
    const auto task = task_of(sample, options);
    double sum = 0, weight = 0;
    std::vector<double> output(std::size_t(task->shape().output_size));
    every(*task, Split::test, [&](Batch<double>& b, Index t, Index s) {
      task->trivial(t, output);
      const std::int32_t label = b.label(t, s);
      const double w = b.weight(t, s);
      sum += task->loss(cmat(output.data(), Index(output.size()), 1, Index(output.size())),
                        {CMat<double>(), {&label, 1}, {&w, 1}}, mat<double>(nullptr, 0, 0, 0));
      weight += w;
    });
    CHECK(sum / weight == doctest::Approx(task->baseline()).epsilon(1e-10));
  }
  const auto task = task_of(sample);
  CHECK((task->metrics().at(0).name == "frame_error_rate" && !task->metrics()[0].higher_is_better));
  const Matrix<double> output = Matrix<double>::Identity(61, 4);
  const std::int32_t labels[] = {0, 1, 5, 3};
  const double weights[] = {1, 0.5, 2, 0};
  Ratio ratio;
  task->measure(output, {CMat<double>(), labels, weights}, {&ratio, 1});
  CHECK((ratio.sum == 2 && ratio.weight == 3.5));
}

TEST_CASE("a new sound gives the inputs that it has in the corpus") {
  const Sample sample;
  CHECK(opens_a_test_sound("timit_phonemes", *task_of(sample, "", 1), 0));
}

TEST_CASE("new sounds that are not like those of TIMIT") {
  const Sample sample;
  const auto task = task_of(sample);
  const std::string file = (sample.path / "new.wav").string();
  const auto says = [&](const std::string& bytes) {
    write(file, bytes);
    return refusal_of([&] { open("timit_phonemes", "", *task, file); });
  };
  CHECK(says(wav(std::vector<int>(4000, 5), 8000)) == file + ": 8000 samples per second, but TIMIT has 16000.");
  CHECK(says(wav(std::vector<int>(399, 5))) == file + ": shorter than a window of 25 ms.");
  CHECK(says(wav(std::vector<int>(400, 5))) == "accepted");
}

TEST_CASE("transcriptions that are missing, damaged, of another sound, or end a little late") {
  const Sample sample;
  CHECK(task_of(sample)->files().size() == 44);
  const fs::path phones = sample.path / "timit/dr1-faaa0/sx1.phn";
  write(phones, "0 1000 h#\n1000 5700 iy\n");
  CHECK(refusal(sample) == "accepted");
  write(phones, "0 1000 h#\n1000 9000 iy\n");
  CHECK(refusal(sample).find("sx1.phn: the transcription ends at sample 9000, but ") != std::string::npos);
  write(phones, "0 1000 h\n");
  CHECK(refusal(sample).find("sx1.phn: line 1 has the label \"h\"") != std::string::npos);
  fs::remove(phones);
  CHECK(refusal(sample).find("sx1.wav: there is no transcription sx1.phn next to it. The corpus is") !=
        std::string::npos);
  write(phones, "0 100 h#\n");
  write(sample.path / "timit/dr1-faaa0/sx1.wav", wav(std::vector<int>(399, 5)));
  CHECK(refusal(sample).find("sx1.wav: shorter than a window of 25 ms") != std::string::npos);
}

TEST_CASE("a gap in the transcription has no weight") {
  const Sample sample;
  for (const auto& entry : fs::recursive_directory_iterator(sample.path))
    if (entry.path().extension() == ".phn") write(entry.path(), "500 1000 h#\n2000 3000 iy\n");
  every(*task_of(sample), Split::test, [&](Batch<double>& batch, Index t, Index b) {
    const Index middle = 160 * t + 200;
    CHECK(batch.weight(t, b) == (middle < 500 || (middle >= 1000 && middle < 2000) ? 0 : 1));
  });
}

TEST_CASE("the real sample") {
  const char* data = std::getenv("STIEFEL_DATA");
  if (!data || !fs::exists(fs::path(data) / "timit_sample/timit")) {
    std::cout << "skipped: the real sample of TIMIT; STIEFEL_DATA names no folder with timit_sample/timit/\n";
    return;
  }
  const std::string folder = "folder: timit_sample/timit";
  const auto task = make<float>("timit_phonemes", "{" + folder + ", sa: true}", {1, 8, data});
  std::set<std::int32_t> labels;
  Index windows = 0, scored = 0;
  for (const Split split : {Split::validation, Split::test})
    every(*task, split, [&](Batch<float>& batch, Index t, Index b) {
      labels.insert(batch.label(t, b)), ++windows, scored += batch.weight(t, b) > 0;
    });
  CHECK(windows == scored);
  for (Index i = 0; i < 13; ++i) {  // 100 training utterances, the last batch beginning a new pass
    Batch<float> batch = batch_of(*task, Split::train, i);
    for (Index b = 0; b < batch.sequences(); ++b)
      for (Index t = 0; t < batch.length(b); ++t) labels.insert(batch.label(t, b));
  }
  CHECK(labels.size() == 61);
  const auto folded = make<float>("timit_phonemes", "{" + folder + ", sa: true, classes: 39}", {1, 8, data});
  Index without = 0;
  for (const Split split : {Split::validation, Split::test})
    every(*folded, split, [&](Batch<float>& batch, Index t, Index b) { without += batch.weight(t, b) == 0; });
  CHECK((without > 0 && without < windows / 20));
  CHECK(task->baseline() < std::log(61.));
  CHECK(folded->baseline() < task->baseline());
}
