/// Tasks made from the plugins that were built, with options as in a YAML file.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <stiefel/error.hpp>
#include <stiefel/plugin.hpp>

#include "choose_plugin.hpp"
#include "host/registry.hpp"

namespace task_plugins {

inline const stiefel::Registry& registry() {
  static const stiefel::Registry registry({STIEFEL_PLUGINS});
  return registry;
}

template <class S> std::unique_ptr<stiefel::Task<S>> make(const std::string& name, const std::string& options,
                                                          const stiefel::TaskContext& context) {
  const stiefel::Entry& entry = registry().find(stiefel::Role::task, name);
  const stiefel::PluginChoice choice = stiefel::choose_plugin(entry, options);
  return stiefel::created<stiefel::Task<S>>(entry, choice.options.get(), &context);
}

/// New sequences for a network that was trained with `task`; null for another format.
template <class S> std::unique_ptr<stiefel::SequenceReader<S>> open(const std::string& name, const std::string& options,
                                                                    const stiefel::Task<S>& task,
                                                                    const std::string& file) {
  const stiefel::PluginChoice choice = stiefel::choose_plugin(registry().find(stiefel::Role::task, name), options);
  return std::move(choice.open<S>(registry(), {task.shape(), task.form(), task.alphabet()}, file).object);
}

template <class S>
stiefel::Batch<S> batch_of(const stiefel::Task<S>& task, stiefel::Split split, stiefel::Index index) {
  stiefel::Batch<S> batch;
  task.fill(split, index, batch);
  return batch;
}

template <class S> stiefel::Targets<S> targets_of(const stiefel::Batch<S>& batch) {
  return {batch.targets(), batch.labels(), batch.weights()};
}

/// What trivial() outputs, in the columns of the batch's targets.
template <class S> stiefel::Matrix<S> trivial_output(const stiefel::Task<S>& task, const stiefel::Batch<S>& batch) {
  const stiefel::TaskShape shape = task.shape();
  stiefel::Matrix<S> output = stiefel::Matrix<S>::Zero(shape.output_size, stiefel::Index(batch.weights().size()));
  for (stiefel::Index b = 0; b < batch.sequences(); ++b)
    for (stiefel::Index t = 0; t < batch.length(b); ++t)
      if (shape.readout == stiefel::ReadoutKind::every || t == batch.length(b) - 1)
        task.trivial(t, {output.col(batch.scored(t, b)).data(), std::size_t(shape.output_size)});
  return output;
}

/// What the task that `make_task` makes is refused with.
template <class F> std::string refusal_of(F&& make_task, stiefel::Exit code = stiefel::Exit::data) {
  try {
    make_task();
  } catch (const stiefel::Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "accepted";
}

/// What a task reports, kept in memory.
struct Reported final : stiefel::Outcome {
  std::map<std::string, std::vector<double>> scalars;
  std::map<std::string, std::string> files;
  void scalar(const std::string& name, double value, double) override { scalars[name].push_back(value); }
  void file(const std::string& name, std::string_view bytes) override { files[name] = bytes; }
};

/// Loss of trivial() over a whole split, as the trainer sums it.
template <class S> double trivial_loss(const stiefel::Task<S>& task, stiefel::Split split) {
  double sum = 0, weight = 0;
  for (stiefel::Index i = 0; i < task.batches(split); ++i) {
    const stiefel::Batch<S> batch = batch_of(task, split, i);
    std::vector<S> weights(batch.weights().size(), 0);  // columns beyond a sequence's end are none of the task's
    for (stiefel::Index b = 0; b < batch.sequences(); ++b)
      for (stiefel::Index t = 0; t < batch.length(b); ++t) {
        const auto column = std::size_t(batch.scored(t, b));
        weights[column] = batch.weights()[column];
      }
    const stiefel::Matrix<S> output = trivial_output(task, batch);
    const stiefel::Targets<S> targets{batch.targets(), batch.labels(), weights};
    sum += task.loss(output, targets, stiefel::mat<S>(nullptr, 0, 0, 0));
    weight += stiefel::total_weight(targets);
  }
  return sum / weight;
}

template <class S> double trivial_loss(const stiefel::Task<S>& task, const stiefel::Batch<S>& batch) {
  const stiefel::Matrix<S> output = trivial_output(task, batch);
  const auto targets = targets_of(batch);
  return task.loss(output, targets, stiefel::mat<S>(nullptr, 0, 0, 0)) / stiefel::total_weight(targets);
}

/// Whether a sound of the task, read as a new one, has the inputs of the first test sequence, and `more` steps beyond.
inline bool opens_a_test_sound(const std::string& name, const stiefel::Task<double>& task, stiefel::Index more) {
  stiefel::Batch<double> expected = batch_of(task, stiefel::Split::test, 0), batch;
  const stiefel::Index n = expected.length(0);
  for (const stiefel::DataFile& file : task.files()) {
    if (!file.path.ends_with(".wav")) continue;
    const auto reader = open(name, "", task, file.path);
    if (!reader->next() || !reader->read(10000, batch)) return false;
    if (batch.steps() != n + more) continue;
    double worst = 0;
    for (stiefel::Index t = 0; t < n; ++t)
      worst =
          std::max(worst, (stiefel::as_vector(batch.input(t, 0)) - stiefel::as_vector(expected.input(t, 0))).norm());
    if (worst < 1e-4) return true;
  }
  return false;
}

}  // namespace task_plugins
