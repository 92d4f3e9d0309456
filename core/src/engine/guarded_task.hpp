// A task whose plugin is not trusted: every call is guarded, and every result that a pass relies on is checked.
#pragma once

#include <string>
#include <vector>

#include <stiefel/task.hpp>
#include "host/plugin_call.hpp"

namespace stiefel {

/// Every Error names the plugin. A wrong result of the plugin throws Error (Exit::plugin).
template <class S> class STIEFEL_API GuardedTask final : public Task<S> {
 public:
  explicit GuardedTask(Plugged<Task<S>> task);

  TaskShape shape() const override { return shape_; }
  Index batches(Split split) const override;
  void fill(Split split, Index index, Batch<S>& batch) const override;
  double loss(CMat<S> output, const Targets<S>& targets, Mat<S> doutput) const override;
  std::vector<Metric> metrics() const override { return metrics_; }
  void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const override;
  double baseline() const override;
  void trivial(Index t, std::span<S> output) const override;
  std::vector<DataFile> files() const override;
  bool reports() const override;
  void report(Index index, const Batch<S>& batch, CMat<S> outputs, Outcome& outcome) const override;
  std::vector<std::string> alphabet() const override;
  DataForm form() const override;
  std::vector<Baseline> baselines() const override;
  std::vector<Remark> remarks() const override;
  std::string summary() const override;

 private:
  /// Throws Error (Exit::plugin) with `fault` unless it is empty.
  void require(const std::string& fault) const;

  Plugged<Task<S>> task_;
  TaskShape shape_;
  std::vector<Metric> metrics_;
};

/// A reader of new sequences, from a plugin that is not trusted either.
template <class S> class STIEFEL_API GuardedReader final : public SequenceReader<S> {
 public:
  /// `shape`: that of the task.
  GuardedReader(Plugged<SequenceReader<S>> reader, const TaskShape& shape)
      : reader_(std::move(reader)), shape_(shape) {}

  bool next() override;
  std::string name() const override;
  bool read(Index steps, Batch<S>& batch) override;

 private:
  Plugged<SequenceReader<S>> reader_;
  TaskShape shape_;
};

}  // namespace stiefel
