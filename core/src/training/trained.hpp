// What a trained network keeps of its task: /task in the network's file.
#pragma once

#include <filesystem>
#include <memory>

#include <stiefel/task.hpp>

#include "record/hdf5.hpp"
#include "training/run.hpp"

namespace stiefel {

template <class S> Trained trained_of(const Task<S>& task) { return {task.shape(), task.form(), task.alphabet()}; }

/// Writes nothing for a task without outputs, which stands for an unknown one.
void write_trained(const hdf5::Group& root, const Trained& trained);
/// Reads what write_trained() wrote to a run's file; null for one of an earlier build. Throws Error (Exit::damaged) if
/// the file is damaged.
STIEFEL_API std::shared_ptr<const Trained> read_trained(const std::filesystem::path& network);

/// The task of a network that is applied to new data, of which no target is known: it has no batches and no loss.
template <class S> class AppliedTask final : public Task<S> {
 public:
  explicit AppliedTask(std::shared_ptr<const Trained> trained) : Task<S>(TaskContext{}), trained_(std::move(trained)) {}
  TaskShape shape() const override { return trained_->shape; }
  DataForm form() const override { return trained_->form; }
  std::vector<std::string> alphabet() const override { return trained_->alphabet; }
  Index batches(Split) const override { return 0; }
  void fill(Split, Index, Batch<S>&) const override { STIEFEL_ASSERT(false); }
  double loss(CMat<S>, const Targets<S>&, Mat<S>) const override { return 0; }

 private:
  std::shared_ptr<const Trained> trained_;
};

/// `options` for the network in a file.
inline RunOptions with_trained(RunOptions options, const std::filesystem::path& network) {
  options.trained = read_trained(network);
  return options;
}

}  // namespace stiefel
