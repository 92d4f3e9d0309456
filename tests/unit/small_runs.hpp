/// Small runs in a process of a test: an experiment, what it takes to run it, and all of its bits that count.
#pragma once

#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "record/reader.hpp"
#include "training/run.hpp"

#include "scratch.hpp"

namespace stiefel::small_runs {

/// Holds the plugins that the tests are built with.
inline Registry& registry() {
  static Registry registry({STIEFEL_PLUGINS, STIEFEL_SOUND_PLUGINS});
  return registry;
}

struct Quiet final : RunObserver {
  std::vector<std::string> lines;
  std::atomic<int>* raised = nullptr;
  Index raised_at = 5;
  void note(const std::string& line) override { lines.push_back(line); }
  void progress(const Progress& progress) override {
    if (raised && progress.step == raised_at) *raised = SIGTERM;
  }
};

const char* const base = R"(name: small
task: {plugin: adding, length: 12}
model:
  cell: {plugin: elman, hidden: 10, activation: leaky_relu}
  recurrent: {plugin: householder, reflections: 4}
  initial_state: {kind: learned, init: uniform, scale: 0.1}
optimizer: {plugin: adam, rate: 0.01}
train: {batch: 13, steps: 20, evaluate_every: 10}
record: {loss: 1, spectrum: 10, gradient_norms: 10, orthogonality: 10, blocks: {recurrent.U: 10}}
)";

inline LoadedExperiment load(const std::vector<std::string>& overrides = {}, const std::string& text = base) {
  return load_experiment_text(text, "small", overrides, registry());
}

inline RunSummary run(const LoadedExperiment& loaded, const std::filesystem::path& output, Quiet& observer,
                      const std::atomic<int>* signal = nullptr) {
  RunOptions options;
  options.output = output;
  options.signal = signal;
  return run_experiment(loaded, registry(), options, observer);
}

/// The override of a task that carries its state, with a text that is written to the folder.
inline std::string text_stream(const std::filesystem::path& folder) {
  std::string letters;
  for (int i = 0; i < 100; ++i) letters += char('a' + i * i % 7);
  scratch::write(folder / "letters.txt", letters);
  return "task={plugin: characters, mode: stream, bptt: 10, file: " + (folder / "letters.txt").string() + "}";
}

/// Everything that must not depend on threads or on when it was computed.
inline std::vector<double> fingerprint(const std::filesystem::path& directory) {
  std::vector<double> values;
  const ResultReader results(directory / "results.h5");
  for (const char* path :
       {"/steps/loss", "/steps/grad_norm", "/epochs/valid_loss", "/spectrum/recurrent/singular_values",
        "/gradient/hidden_grad_norm", "/gradient/last_step_grad_norm", "/gradient/hidden_norm",
        "/blocks/recurrent_u/values", "/final/test_loss"}) {
    const Array array = results.read(path);
    values.insert(values.end(), array.values.begin(), array.values.end());
  }
  const ResultReader weights(directory / "checkpoints/last.h5");
  for (const std::string& name : weights.children("/weights")) {
    const Array array = weights.read("/weights/" + name);
    values.insert(values.end(), array.values.begin(), array.values.end());
  }
  return values;
}

}  // namespace stiefel::small_runs
