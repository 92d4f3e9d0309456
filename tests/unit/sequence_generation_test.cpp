// Generation of an excerpt of a recording.
#include "sound_files.hpp"
#include "task_plugins.hpp"

#include <doctest/doctest.h>
#include <iostream>

#include "tasks/formats/audio.hpp"

using namespace stiefel;
using namespace task_plugins;
using namespace sound_files;
namespace fs = std::filesystem;

namespace {

struct Recording : Folder {
  std::vector<int> samples;
  Recording() {
    for (int i = 0; i < 100; ++i) samples.push_back(i < 40 ? 100 * (i % 7) - 200 : -8 * i);
    write(path / "song/a.wav", wav(samples, 44100));
  }
};

auto task_of(const Folder& folder, const std::string& options, Index batch = 1) {
  return make<double>("sequence_generation", "{file: song/a.wav, " + options + "}", {1, batch, folder.path.string()});
}

std::vector<double> targets(const Task<double>& task, Split split = Split::test) {
  Batch<double> batch = batch_of(task, split, 0);
  std::vector<double> all;
  for (Index t = 0; t < batch.length(0); ++t) all.push_back(batch.target(t, 0)[0]);
  return all;
}

std::string refusal(const Folder& folder, const std::string& options) {
  return refusal_of([&] { return make<double>("sequence_generation", options, {1, 1, folder.path.string()}); });
}

}  // namespace

TEST_CASE("the target is the excerpt, scaled, in every split") {
  const Recording song;
  const auto task = task_of(song, "start: 10, length: 20, excerpt: 1");
  const TaskShape shape = task->shape();
  CHECK((shape.input == InputKind::none && shape.output_size == 1 && shape.steps == 20 && !shape.labels));
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    CHECK(task->batches(split) == 1);
    const std::vector<double> y = targets(*task, split);
    REQUIRE(y.size() == 20);
    for (std::size_t t = 0; t < 20; ++t) CHECK(y[t] == doctest::Approx(song.samples[30 + t] / 400.));
  }
  const auto file = task_of(song, "length: 7, scale: file"), none = task_of(song, "length: 7, scale: none");
  CHECK(targets(*file)[0] == doctest::Approx(-200. / 792));
  CHECK(targets(*none)[0] == doctest::Approx(-200. / 32768));
  CHECK(task->files().size() == 1);
  CHECK((task->files()[0].name == "a.wav" && task->files()[0].path == (song.path / "song/a.wav").string()));
  CHECK(
      make<double>("sequence_generation", "{length: 7, file: " + (song.path / "song/a.wav").string() + "}", {1, 1, ""})
          ->batches(Split::train) == 1);
}

TEST_CASE("a training batch has the excerpt in each of its sequences") {
  const Recording song;
  const auto task = task_of(song, "length: 7", 3);
  Batch<double> batch = batch_of(*task, Split::train, 5);
  REQUIRE(batch.sequences() == 3);
  for (Index t = 0; t < 7; ++t)
    CHECK((batch.target(t, 0)[0] == batch.target(t, 1)[0] && batch.target(t, 1)[0] == batch.target(t, 2)[0]));
  CHECK(batch_of(*task, Split::test, 0).sequences() == 1);
}

TEST_CASE("the mean has the baseline as its loss and a normalized error of 1") {
  const Recording song;
  const auto task = task_of(song, "length: 50");
  const std::vector<double> y = targets(*task);
  double mean = 0, variance = 0;
  for (const double value : y) mean += value / 50;
  for (const double value : y) variance += (value - mean) * (value - mean) / 50;
  const Batch<double> batch = batch_of(*task, Split::test, 0);
  CHECK(task->baseline() == doctest::Approx(variance));
  CHECK(trivial_loss(*task, batch) == doctest::Approx(variance));
  REQUIRE(task->metrics().size() == 1);
  CHECK((task->metrics()[0].name == "nmse" && !task->metrics()[0].higher_is_better));
  Ratio ratio;
  const Matrix<double> trivial = trivial_output(*task, batch);
  task->measure(trivial, targets_of(batch), {&ratio, 1});
  CHECK(ratio.sum / ratio.weight == doctest::Approx(1));
  ratio = {};
  Matrix<double> half = trivial;
  for (Index t = 0; t < 50; ++t) half(0, t) = (half(0, t) + y[std::size_t(t)]) / 2;
  task->measure(half, targets_of(batch), {&ratio, 1});
  CHECK(ratio.sum / ratio.weight == doctest::Approx(0.25));
}

TEST_CASE("what the network puts out is written beside the excerpt") {
  const Recording song;
  const auto task = task_of(song, "length: 7");
  REQUIRE(task->reports());
  const Batch<double> batch = batch_of(*task, Split::test, 0);
  const Matrix<double> outputs = Matrix<double>::Constant(1, 7, 0.25);
  Reported reported;
  task->report(0, batch, outputs, reported);
  REQUIRE(reported.files.size() == 2);
  const auto sound = [&](const char* name) {
    return parse_audio(std::as_bytes(std::span(reported.files.at(name))), name, "");
  };
  CHECK(sound("generated.wav").samples == std::vector<double>(7, 0.25));
  CHECK(sound("generated.wav").rate == 44100);
  const std::vector<double> y = targets(*task);
  for (std::size_t t = 0; t < 7; ++t) CHECK(std::abs(sound("excerpt.wav").samples[t] - y[t]) < 1e-4);
}

TEST_CASE("recordings that do not fit") {
  const Recording song;
  const auto says = [&](const std::string& options, const std::string& part) {
    const std::string text = refusal(song, options);
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  says("length: 7", "sequence_generation needs a recording: set task.file");
  says("{length: 7, file: song/b.wav}",
       "sequence_generation: there is no song/b.wav, and none in " + song.path.string());
  says("{length: 7, file: /nowhere/b.wav}", "there is no /nowhere/b.wav. Give its path relative to the current folder");
  says("file: song/a.wav", "100 samples, too few for excerpt 0 of 800 samples from sample 0 on");
  says("{file: song/a.wav, length: 20, excerpt: 5}", "too few for excerpt 5 of 20 samples");
  says("{file: song/a.wav, length: 20, excerpt: 4}", "accepted");
  says("{file: song/a.wav, length: 20, start: 81}", "too few for excerpt 0 of 20 samples from sample 81 on");
  says("{file: song/a.wav, length: 2, start: 9223372036854775807}", "too few");
  says("{file: song/a.wav, length: 9223372036854775807}", "too few");
  says("{file: song/a.wav, length: 2, excerpt: 9223372036854775807}", "too few");
  write(song.path / "song/a.wav", wav(std::vector<int>(100, 77)));
  says("{file: song/a.wav, length: 20}", "excerpt 0 of 20 samples from sample 0 on is constant");
  write(song.path / "song/a.wav", "no sound");
  says("{file: song/a.wav, length: 20}",
       "a.wav: neither a WAV nor a FLAC, OGG or NIST SPHERE file; if it holds sound, convert it: ffmpeg -i FILE "
       "-c:a pcm_s16le out.wav. Name another");
}

TEST_CASE("a real recording") {
  const char* data = std::getenv("STIEFEL_DATA");
  if (!data || !fs::exists(fs::path(data) / "song/loop_tabla.flac")) {
    std::cout << "skipped: a real recording; STIEFEL_DATA names no folder with song/loop_tabla.flac\n";
    return;
  }
  for (Index excerpt = 0; excerpt < 5; ++excerpt) {
    const auto task = make<double>(
        "sequence_generation", "{file: song/loop_tabla.flac, excerpt: " + std::to_string(excerpt) + "}", {1, 1, data});
    const std::vector<double> y = targets(*task);
    CHECK(y.size() == 800);
    const auto [low, high] = std::minmax_element(y.begin(), y.end());
    CHECK(std::max(-*low, *high) == doctest::Approx(1));
  }
}
