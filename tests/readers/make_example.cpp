// Writes a small result file such as a run writes it, for the tests of the readers: make_example OUTDIR
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <numbers>

#include "record/layout.hpp"
#include "record/progress.hpp"
#include "record/provenance.hpp"
#include "record/recorder_thread.hpp"

namespace {

using namespace stiefel;

constexpr Index hidden = 8, length = 20, steps = 300;
constexpr double time_zero = 1.7e9;

RunHeader header() {
  RunHeader header;
  header.title = "adding-20-ornn, seed 1";
  header.run_id = "0123abcd";
  header.yaml = "name: adding-20-ornn\nseed: 1\n# größer als ASCII: ∂L/∂h\n";
  header.source = "extends: [base.yaml]\nname: adding-20-ornn\n";
  header.overrides = {"seed=1", "train.steps=300"};
  header.hash = std::string(64, 'a');
  header.origins = {"name=adding.yaml:1", "seed=command line:1", "task.length=base.yaml:7"};
  header.provenance = gather_provenance({"baseline", 2, {"stiefel", "run", "adding.yaml", "name=it's one"}});
  header.plugins = {{"adding", "task", "/lib/libadding.so", "1.0", "11ff", std::string(64, 'b')},
                    {"householder", "parametrisation", "/lib/libhouseholder.so", "1.0", "", std::string(64, 'c')}};
  header.datasets = {{"train-images", "/data/train-images-idx3-ubyte.gz", 9912422, std::string(64, 'd')}};
  header.segments = {{.host = "example"}};
  return header;
}

const Column snapshot{.name = "snapshot", .long_name = "optimizer step of the snapshot", .type = ColumnType::i8};

Table steps_table() {
  return {.group = "/steps",
          .row = {.name = "step", .long_name = "optimizer step", .type = ColumnType::i8},
          .columns = {{.name = "loss", .long_name = "training loss", .description = "mean over the batch"},
                      {.name = "wall_time", .units = "seconds since 1970-01-01T00:00:00Z", .long_name = "wall clock"},
                      {.name = "rss_bytes", .units = "byte", .long_name = "resident memory", .type = ColumnType::i8}}};
}

Table epochs_table() {
  return {
      .group = "/epochs",
      .row = {.name = "epoch", .type = ColumnType::i8},
      .columns = {{.name = "valid_loss", .long_name = "validation loss"},
                  {.name = "is_best", .long_name = "1 where the model was the best so far", .type = ColumnType::u1}},
      .plot = {.signal = "valid_loss", .logarithmic = true, .of_file = true}};
}

Table spectrum_table() {
  return {.group = "/spectrum/recurrent",
          .row = snapshot,
          .axes = {count_axis("k", hidden, "index of the value")},
          .columns =
              {{.name = "singular_values", .long_name = "singular values, descending", .axes = {"k"}},
               {.name = "eigenvalues", .long_name = "eigenvalues", .type = ColumnType::complex, .axes = {"k"}},
               {.name = "eigenvalue_phase", .units = "radian", .long_name = "phase of the eigenvalues", .axes = {"k"}},
               {.name = "eigenvalue_modulus", .long_name = "modulus of the eigenvalues", .axes = {"k"}},
               {.name = "condition_number", .long_name = "largest over smallest singular value"}},
          .chunk_rows = 16};
}

Table gradient_table() {
  return {.group = "/gradient",
          .row = snapshot,
          .axes = {count_axis("t", length, "time step of the sequence")},
          .columns = {{.name = "hidden_grad_norm", .long_name = "norm of dL/dh_t", .axes = {"t"}}},
          .chunk_rows = 16,
          .plot = {.signal = "hidden_grad_norm", .logarithmic = true}};
}

Table orthogonality_table() {
  return {.group = "/orthogonality/recurrent",
          .row = snapshot,
          .axes = {{.name = "block", .long_name = "orthogonal block", .labels = {"recurrent.U", "recurrent.V"}}},
          .columns = {{.name = "defect_fro", .long_name = "Frobenius norm of W'W - I", .axes = {"block"}}}};
}

Table timing_table() {
  return {
      .group = "/timing",
      .row = {.name = "epoch", .type = ColumnType::i8},
      .axes = {{.name = "phase", .long_name = "phase of a training step", .labels = {"data", "forward", "backward"}}},
      .columns = {{.name = "seconds", .units = "s", .long_name = "time spent", .axes = {"phase"}}}};
}

void record(RecorderThread& recorder) {
  const int steps_id = recorder.define(steps_table()), epochs = recorder.define(epochs_table()),
            spectrum = recorder.define(spectrum_table());
  const int gradient = recorder.define(gradient_table()), orthogonality = recorder.define(orthogonality_table());
  const int timing = recorder.define(timing_table());
  for (Index step = 1; step <= steps; ++step) {
    const double loss = 0.167 * std::exp(-double(step) / 100);
    recorder.append(steps_id, double(step),
                    std::array{step == 7 ? std::nan("") : loss, time_zero + double(step), 1e8 + double(step)});
    if (step % 50 == 0) {
      std::vector<double> row;
      for (Index k = 0; k < hidden; ++k) row.push_back(1 + 1e-3 * double(hidden - k));
      for (Index k = 0; k < hidden; ++k) row.insert(row.end(), {std::cos(double(k)), std::sin(double(k))});
      for (Index k = 0; k < hidden; ++k) row.push_back(std::remainder(double(k), 2 * std::numbers::pi));
      row.insert(row.end(), std::size_t(hidden), 1.0);
      row.push_back(1.008 / 1.001);
      recorder.append(spectrum, double(step), row);
      row.clear();
      for (Index t = 0; t < length; ++t) row.push_back(t < 15 ? std::pow(0.9, double(length - t)) : std::nan(""));
      recorder.append(gradient, double(step), row);
      recorder.append(orthogonality, double(step), std::array{1e-7 * double(step), 2e-7});
    }
    if (step % 100 == 0) {
      recorder.append(epochs, double(step / 100), std::array{loss, step == 300 ? 1.0 : 0.0});
      recorder.append(timing, double(step / 100), std::array{1.0, 2.0, 3.0 + double(step)});
      recorder.publish(step, {});
    }
  }
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) {
    std::fprintf(stderr, "usage: make_example OUTDIR\n");
    return 2;
  }
  const std::filesystem::path directory = words[1];
  std::filesystem::create_directories(directory);
  stiefel::RecorderThread recorder(directory, header());
  record(recorder);
  stiefel::Status status;
  status.state = "finished";
  status.best_metric = 0.0083;
  status.best_step = 300;
  recorder.finish(steps, status);
  stiefel::ProgressLog progress(directory / "progress.jsonl");
  const std::pair<std::string, double> values[] = {{"loss", 0.0083}, {"gradient", std::nan("")}};
  progress.write(steps, 0.01, values);
} catch (const std::exception& error) {
  std::fprintf(stderr, "make_example: %s\n", error.what());
  return 1;
}
