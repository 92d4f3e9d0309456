// All objects of one run in one scalar, made in order: task, network, updater, threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/load.hpp"
#include "engine/network.hpp"
#include "training/prefetch.hpp"
#include "training/run.hpp"
#include "training/updater.hpp"

namespace stiefel {

/// training: all; network: without what only training needs, its memory included; sizes: whether all fits together and
/// into memory, without anything that grows with a size of the experiment.
enum class Extent { training, network, sizes };

template <class S> std::unique_ptr<Task<S>> make_task(const Experiment& experiment, Registry& registry,
                                                      const RunOptions& options, Extent extent);

template <class S> struct STIEFEL_API Session {
  /// `loaded` must outlive it.
  Session(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
          Extent extent = Extent::training);

  Index total_steps() const;  ///< of the optimizer, for train.accumulate batches each
  Index evaluation_period() const;
  Index batches(Split split) const { return task->batches(split); }
  /// Epochs in so many training batches: an epoch has as many full batches as the training set, which a larger batch passes more than
  /// once.
  double epochs(Index batches) const;
  /// Makes the maps and tables of the parameters, or, with weight noise, of the noisy ones of this step.
  void refresh(Index step);
  /// Moves the parameters by the gradient of the pass before. With weight noise, composite decay and penalties belong
  /// to the parameters without it, so they are added to the gradient, and to `pass`, here.
  UpdateNorms update(Index step, PassResult& pass);
  /// One training step with a batch, without moving the parameters: refresh, then forward and back.
  PassResult pass(const Batch<S>& batch, Index step, const PassRequest& request);
  /// A training pass over batch `number` of an optimizer step.
  PassRequest request(Index step, Index number) const;
  struct Evaluation {
    std::function<bool()> stopped = {};                                 // called before each batch
    std::function<void(const Batch<S>&, double loss)> not_finite = {};  // called for a loss that is NaN or infinite
    Outcome* outcome = nullptr;                                         // the task reports every batch to it
  };
  /// Loss and metrics over a whole split, weighted means; the carried state is saved and restored. Each batch is
  /// watched. Nothing when there is no batch, when it was stopped, and after a loss that is not finite.
  std::vector<double> evaluate(Split split, Watchdog& watchdog, const Evaluation& evaluation);
  /// Name of the first block with a number that is not finite, in gradients or else in parameters; empty when there is
  /// none.
  std::string broken_block();

  const Experiment& experiment;
  std::unique_ptr<Task<S>> task;
  std::vector<DataFile> files;  // of the task, with absolute paths
  std::unique_ptr<Network<S>> network;
  std::unique_ptr<Updater<S>> updater;  // null for Extent::network
  Workers workers;
  std::vector<std::string> remarks;  // on settings that are allowed but probably a mistake

 private:
  Index steps_of(Index batches) const;  // the last one may take batches of the next epoch
  void require_recorded_blocks() const;
  void require_blocks_to_start() const;
  void add_files_of_model(const LoadedExperiment& loaded);
  /// Errors of a file with initial values begin with the place of its key.
  void initialise();
  bool starts_from_file(const std::string& block) const;
  /// Replaces initial values by those of model.init_file.
  void start_from_file();
  void remark_on_batch();
  void remark_on_directions();
  void remark_on_length();
  void remark_on_splits(const LoadedExperiment& loaded);
  std::vector<S> noisy_;
  std::vector<std::pair<std::string, std::string>> files_of_model_;  // key and value
};

}  // namespace stiefel
