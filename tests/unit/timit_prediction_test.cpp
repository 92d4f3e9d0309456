// Prediction of speech on a part of TIMIT made here and, where STIEFEL_DATA names a folder with it, on the real sample.
#include "sound_files.hpp"
#include "task_plugins.hpp"

#include <doctest/doctest.h>
#include <iostream>
#include <set>

#include "tasks/formats/audio.hpp"
#include "tasks/formats/timit_splits.hpp"
#include "tasks/signal/levels.hpp"
#include "tasks/signal/resample.hpp"
#include "tasks/signal/stft.hpp"

using namespace stiefel;
using namespace task_plugins;
using namespace sound_files;
namespace fs = std::filesystem;

namespace {

constexpr Split splits[] = {Split::train, Split::validation, Split::test};
constexpr Index bins = 129;

/// Six women and five men of three sentences, of which two count: 5 speakers, 10 utterances for training; 4 for
/// validation, 8 for test.
struct Sample : Folder {
  explicit Sample(std::size_t samples = 4000) { write_timit(path / "timit", 6, 5, 2, samples); }
};

template <class S = double>
auto task_of(const Folder& folder, const std::string& options = "", Index batch = 3, std::uint64_t seed = 1) {
  return make<S>("timit_prediction", options, {seed, batch, folder.path.string()});
}

/// Levels of the test utterances, in order, computed step by step.
std::vector<Eigen::MatrixXd> test_levels(const Folder& folder) {
  const TimitCorpus corpus = find_timit(folder.path.string(), "", "a test");
  std::vector<Eigen::MatrixXd> all;
  for (const std::size_t i : split_timit(corpus, {}, "").test) {
    std::vector<double> x = resample(read_audio(corpus.utterances[i].audio, "").samples, 1, 2);
    for (double& value : x) value = std::round(value * 32768) / 32768;
    all.push_back(levels(stft(x)));
  }
  return all;
}

Eigen::VectorXd column(std::span<double> numbers) {
  return Eigen::Map<Eigen::VectorXd>(numbers.data(), Index(numbers.size()));
}

std::string refusal(const Folder& folder, const std::string& options = "") {
  return refusal_of([&] { return task_of(folder, options); });
}

}  // namespace

TEST_CASE("the input is the level of a frame, the target that of the next") {
  const Sample sample;
  const auto task = task_of(sample);
  const TaskShape shape = task->shape();
  CHECK((shape.input == InputKind::dense && shape.input_size == bins && shape.output_size == bins && !shape.labels));
  CHECK(shape.readout == ReadoutKind::every);
  const std::vector<Eigen::MatrixXd> expected = test_levels(sample);
  REQUIRE(expected.size() == 8);
  REQUIRE(task->batches(Split::test) == 3);
  CHECK((task->batches(Split::train) == 3 && task->batches(Split::validation) == 2));
  for (Index i = 0; i < 3; ++i) {
    Batch<double> batch = batch_of(*task, Split::test, i);
    REQUIRE(batch.sequences() == (i < 2 ? 3 : 2));
    for (Index b = 0; b < batch.sequences(); ++b) {
      const Eigen::MatrixXd& x = expected[std::size_t(3 * i + b)];
      REQUIRE(batch.length(b) == x.cols() - 1);
      CHECK(batch.length(b) <= shape.steps);
      for (Index t = 0; t < batch.length(b); ++t) {
        CHECK(column(batch.input(t, b)) == x.col(t));
        CHECK(column(batch.target(t, b)) == x.col(t + 1));
        CHECK(batch.weight(t, b) == 1);
      }
      CHECK(column(batch.input(0, b)).isConstant(-50, 1e-9));
    }
  }
}

TEST_CASE("what released code does instead") {
  const Sample sample;
  const Eigen::MatrixXd x = test_levels(sample)[0];
  Batch<double> silence = batch_of(*task_of(sample, "last_target: silence"), Split::test, 0);
  REQUIRE(silence.length(0) == x.cols());
  CHECK(column(silence.input(x.cols() - 1, 0)) == x.col(x.cols() - 1));
  CHECK(column(silence.target(x.cols() - 1, 0)).isConstant(-50, 0));
  Batch<double> recall = batch_of(*task_of(sample, "mode: recall_previous"), Split::test, 0);
  REQUIRE(recall.length(0) == x.cols() - 1);
  for (Index t = 0; t < recall.length(0); ++t) {
    CHECK(column(recall.input(t, 0)) == x.col(t + 1));
    CHECK(column(recall.target(t, 0)) == x.col(t));
  }
}

TEST_CASE("padded averaging dilutes the loss and leaves its gradient where there is sound") {
  const Sample sample;
  const auto valid = task_of(sample), padded = task_of(sample, "mask_average: padded");
  Batch<double> short_batch = batch_of(*valid, Split::test, 0), long_batch = batch_of(*padded, Split::test, 0);
  Index longest = 0;
  for (const Eigen::MatrixXd& x : test_levels(sample)) longest = std::max(longest, x.cols() - 1);
  CHECK(long_batch.steps() == longest);
  double sum = 0;
  Index steps = 0;
  Matrix<double> output = Matrix<double>::Random(bins, longest * 3), gradient = output;
  for (Index b = 0; b < 3; ++b) {
    CHECK(long_batch.length(b) == longest);
    steps += short_batch.length(b);
    for (Index t = 0; t < short_batch.length(b); ++t) {
      CHECK(column(long_batch.input(t, b)) == column(short_batch.input(t, b)));
      sum += (output.col(long_batch.scored(t, b)) - column(short_batch.target(t, b))).squaredNorm() / double(bins);
    }
    for (Index t = short_batch.length(b); t < longest; ++t) CHECK(column(long_batch.input(t, b)).isConstant(-50, 0));
  }
  REQUIRE(steps < 3 * longest);
  const Targets<double> targets = targets_of(long_batch);
  CHECK(total_weight(targets) == 3. * double(longest));
  CHECK(padded->loss(output, targets, view(gradient)) == doctest::Approx(sum));
  for (Index b = 0; b < 3; ++b)
    for (Index t = 0; t < longest; ++t)
      CHECK(gradient.col(long_batch.scored(t, b)).isZero(0) == (t >= short_batch.length(b)));
  REQUIRE(padded->metrics().size() == 1);
  CHECK((padded->metrics()[0].name == "valid_loss" && !padded->metrics()[0].higher_is_better));
  CHECK(valid->metrics().empty());
  Ratio ratio;
  padded->measure(output, targets, {&ratio, 1});
  CHECK(ratio.sum == doctest::Approx(sum));
  CHECK(ratio.weight == double(steps));
}

TEST_CASE("the mean of the training targets reaches the baseline on the test set") {
  const Sample sample;
  for (const char* options :
       {"", "last_target: silence", "mode: recall_previous", "{mode: recall_previous, last_target: silence}",
        "mask_average: padded", "{mask_average: padded, last_target: silence}"}) {
    CAPTURE(options);
    const auto task = task_of(sample, options);
    CHECK(trivial_loss(*task, Split::test) == doctest::Approx(task->baseline()).epsilon(1e-10));
  }
}

TEST_CASE("every epoch shows every training utterance once, in another order; sets share nothing; fill is pure") {
  const Sample sample;
  const auto task = task_of<float>(sample, "", 2), other = task_of<float>(sample, "", 2, 2);
  const auto marks_of = [](const Task<float>& from, Split split, Index epoch) {
    std::vector<float> all;
    for (Index i = 0; i < from.batches(split); ++i) {
      Batch<float> batch = batch_of(from, split, epoch * from.batches(split) + i);
      for (Index b = 0; b < batch.sequences(); ++b) {
        float sum = 0;
        for (Index t = 0; t < batch.length(b); ++t) sum += batch.input(t, b)[3] + batch.input(t, b)[50];
        all.push_back(sum);
      }
    }
    return all;
  };
  const std::vector<float> one = marks_of(*task, Split::train, 0), two = marks_of(*task, Split::train, 1);
  CHECK(one.size() == 10);
  CHECK(one != two);
  CHECK(std::set<float>(one.begin(), one.end()) == std::set<float>(two.begin(), two.end()));
  CHECK(one != marks_of(*other, Split::train, 0));
  CHECK(one == marks_of(*task, Split::train, 0));
  std::set<float> all;
  std::size_t count = 0;
  for (const Split split : splits)
    for (const float x : marks_of(*task, split, 0)) all.insert(x), ++count;
  CHECK((count == 22 && all.size() == 22));
}

TEST_CASE("a new sound gives the inputs that it has in the corpus") {
  const Sample sample;
  CHECK(opens_a_test_sound("timit_prediction", *task_of(sample, "", 1), 1));
}

TEST_CASE("files, and files that do not fit") {
  const Sample sample;
  const std::vector<DataFile> files = task_of(sample)->files();
  CHECK(files.size() == 22);
  std::set<std::string> names;
  for (const DataFile& file : files) {
    names.insert(file.name);
    CHECK(fs::exists(file.path));
    CHECK(file.name.ends_with(".wav"));
  }
  CHECK(names.size() == 22);
  CHECK(names.contains("timit/dr1/faaa0/sx1.wav"));
  CHECK(refusal(sample, "split: published")
            .starts_with("the published sets of TIMIT need the whole corpus, but 0 of the 3696 training"));
  CHECK(refusal(sample, "folder: elsewhere").starts_with("timit_prediction needs the TIMIT corpus, but there is no"));
  CHECK(refusal(sample, "test_speakers: 12").find("too few for 12 test and 2 validation speakers") !=
        std::string::npos);
  write(sample.path / "timit/dr1-faaa0/sx1.wav", wav({1, 2, 3}, 8000));
  CHECK(refusal(sample).find("sx1.wav: 8000 samples per second, but TIMIT has 16000. The corpus is") !=
        std::string::npos);
  write(sample.path / "timit/dr1-faaa0/sx1.wav", wav({1, 2, 3}).substr(0, 49));
  CHECK(refusal(sample).find("its header names 6 bytes of sound, 5 are there. The corpus is") != std::string::npos);
  write(sample.path / "timit/dr1-faaa0/sx1.wav", wav({1, 2, 3}));
  CHECK(refusal(sample) == "accepted");
}

TEST_CASE("sound is put together from predicted levels and the true phases") {
  const Sample sample(16000);
  const auto task = task_of(sample, "waveforms: 4");
  REQUIRE(task->reports());
  CHECK(!task_of(sample, "mode: recall_previous")->reports());
  const auto reported = [&](double error) {
    Reported all;
    for (Index i = 0; i < task->batches(Split::test); ++i) {
      Batch<double> batch = batch_of(*task, Split::test, i);
      Matrix<double> outputs = Matrix<double>::Zero(bins, Index(batch.weights().size()));
      for (Index b = 0; b < batch.sequences(); ++b)
        for (Index t = 0; t < batch.length(b); ++t)
          outputs.col(batch.scored(t, b)) = column(batch.target(t, b)).array() + error * std::sin(double(t));
      task->report(i, batch, outputs, all);
    }
    return all;
  };
  const Reported exact = reported(0), wrong = reported(10);
  REQUIRE(exact.scalars.size() == 2);
  REQUIRE(exact.scalars.at("segsnr").size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(exact.scalars.at("segsnr")[i] > 25);  // levels have 10⁻⁵ beside the power, which is an error in silence
    CHECK(exact.scalars.at("stoi")[i] > 0.999);
    CHECK(wrong.scalars.at("segsnr")[i] < exact.scalars.at("segsnr")[i] - 10);
    CHECK(wrong.scalars.at("stoi")[i] < exact.scalars.at("stoi")[i]);
  }
  CHECK(exact.files.size() == 8);
  for (const auto& [name, bytes] : exact.files) {
    const Audio audio = parse_audio(std::as_bytes(std::span(bytes)), name, "");
    CHECK((audio.rate == 8000 && audio.channels == 1));
    if (!name.ends_with("_predicted.wav")) continue;
    const std::string other = exact.files.at(name.substr(0, name.size() - 13) + "true.wav");
    const Audio clean = parse_audio(std::as_bytes(std::span(other)), name, "");
    REQUIRE(clean.samples.size() == audio.samples.size());
    double worst = 0;
    for (std::size_t n = 0; n < clean.samples.size(); ++n)
      worst = std::max(worst, std::abs(clean.samples[n] - audio.samples[n]));
    CHECK(worst < 1e-2);
  }
}

TEST_CASE("PESQ by a program of the user's own") {
  const Sample sample;
  const fs::path program = sample.path / "its name's PESQ";
  const auto report = [&] {
    const auto task = task_of(sample);
    Batch<double> batch = batch_of(*task, Split::test, 0);
    const Matrix<double> outputs = Matrix<double>::Zero(bins, Index(batch.weights().size()));
    Reported all;
    task->report(0, batch, outputs, all);
    return all;
  };
  write(program,
        "#!/bin/sh\n[ \"$1\" = +8000 ] && cmp -s \"$2\" \"$3\"; [ $? = 1 ] && echo 'Prediction (Raw MOS, MOS-LQO): = "
        "2.5 1.25'\n");
  fs::permissions(program, fs::perms::owner_all);
  setenv("STIEFEL_PESQ", program.c_str(), 1);
  CHECK(report().scalars.at("pesq") == std::vector<double>{1.25, 1.25, 1.25});
  write(program, "#!/bin/sh\necho nothing\n");
  CHECK_THROWS_WITH_AS(report(), doctest::Contains("printed no number"), Error);
  write(program, "#!/bin/sh\nexit 3\n");
  CHECK_THROWS_WITH_AS(report(), doctest::Contains("failed; run it by hand"), Error);
  setenv("STIEFEL_PESQ", "./absent", 1);
  CHECK_THROWS_WITH_AS(task_of(sample), doctest::Contains("/absent, which cannot be run"), Error);
  unsetenv("STIEFEL_PESQ");
  CHECK(!report().scalars.contains("pesq"));
}

TEST_CASE("the real sample: sizes, and the errors of simple predictors") {
  const char* data = std::getenv("STIEFEL_DATA");
  if (!data || !fs::exists(fs::path(data) / "timit_sample/timit")) {
    std::cout << "skipped: the real sample of TIMIT; STIEFEL_DATA names no folder with timit_sample/timit/\n";
    return;
  }
  const auto task = make<double>("timit_prediction", "folder: timit_sample/timit", {1, 8, data});
  // Numbers of tests/golden/timit_ar1.py.
  CHECK(task->baseline() == doctest::Approx(124.811491).epsilon(1e-7));
  Eigen::ArrayXd x = Eigen::ArrayXd::Zero(bins), y = x, xx = x, xy = x;
  Index steps = 0;
  const auto every = [&](Split split, auto act) {
    for (Index i = 0; i < task->batches(split); ++i) {
      Batch<double> batch = batch_of(*task, split, i);
      for (Index b = 0; b < batch.sequences(); ++b)
        for (Index t = 0; t < batch.length(b); ++t)
          act(column(batch.input(t, b)).array(), column(batch.target(t, b)).array());
    }
  };
  every(Split::train, [&](const Eigen::ArrayXd& now, const Eigen::ArrayXd& next) {
    x += now, y += next, xx += now * now, xy += now * next, ++steps;
  });
  CHECK(steps == 16129);
  const double n = double(steps);
  const Eigen::ArrayXd slope = (xy / n - x / n * y / n) / (xx / n - (x / n).square()), offset = y / n - slope * x / n;
  const auto error = [&](Split split) {
    double sum = 0;
    Index count = 0;
    every(split, [&](const Eigen::ArrayXd& now, const Eigen::ArrayXd& next) {
      sum += (next - slope * now - offset).square().mean(), ++count;
    });
    return std::pair(sum / double(count), count);
  };
  CHECK(error(Split::train).first == doctest::Approx(42.790254).epsilon(1e-7));
  CHECK(error(Split::validation).first == doctest::Approx(52.180709).epsilon(1e-7));
  CHECK(error(Split::test).first == doctest::Approx(42.692316).epsilon(1e-7));
  CHECK((error(Split::validation).second == 3006 && error(Split::test).second == 5558));
}
