// The objects of one run in one scalar type: task, network, updater, threads.
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
#include "training/scores.hpp"
#include "training/updater.hpp"

namespace stiefel {

/// What to build. training: everything; sizes: enough to check that all fits together and into memory, without anything
/// that grows with a size of the experiment, except for model.init_file; network: for a trained network that is
/// evaluated, everything but initial values and the updater; application: for one that is given new data, an
/// AppliedTask and the network.
enum class Extent { training, sizes, network, application };

template <class S> std::unique_ptr<Task<S>> make_task(const Experiment& experiment, Registry& registry,
                                                      const RunOptions& options, Extent extent);

template <class S> struct STIEFEL_API Session {
  /// `loaded` must outlive the session.
  Session(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
          Extent extent = Extent::training);

  Index total_steps() const;  ///< optimizer steps, of train.accumulate batches each
  Index evaluation_period() const;
  Index batches(Split split) const { return task->batches(split); }
  /// The metrics of the task, and what record.analysis adds to them.
  std::vector<Metric> metrics() const { return measured(experiment, *task); }
  /// Converts training batches to epochs, which are passes over the training split. A batch larger than the training
  /// set passes it train.batch / training_set times.
  double epochs(Index batches) const;
  /// Computes the maps and tables from the parameters or, with weight noise, from the noisy ones of this step.
  void refresh(Index step);
  /// Moves the parameters by the gradient of the last pass. With weight noise, first adds composite decay and
  /// penalties, which belong to the parameters without noise, to the gradient and to `pass`.
  UpdateNorms update(Index step, PassResult& pass);
  /// Refreshes, then runs a training pass over a batch. The parameters are not moved.
  PassResult pass(const Batch<S>& batch, Index step, const PassRequest& request);
  /// The request for a training pass over batch `number` of an optimizer step.
  PassRequest request(Index step, Index number) const;
  struct Evaluation {
    std::function<bool()> stopped = {};                                 // called before each batch
    std::function<void(const Batch<S>&, double loss)> not_finite = {};  // called for a loss that is NaN or infinite
    Outcome* outcome = nullptr;                                         // the task reports every batch to it
  };
  /// Returns loss and metrics of a split as weighted means; saves and restores the carried state, and watches each
  /// batch. Returns nothing if there is no batch, `stopped` returns true, or a loss is not finite; at other lengths,
  /// losses that are not finite are NaN.
  Scores evaluate(Split split, Watchdog& watchdog, const Evaluation& evaluation);
  /// The constant predictor and others with their losses on the test split, in a line; empty if none is known.
  std::string baselines_text(int digits) const;
  /// The name of the first block with a number that is not finite, in gradients or else in parameters; empty if there
  /// is none.
  std::string broken_block();

  const Experiment& experiment;
  std::unique_ptr<Task<S>> task;
  std::vector<std::unique_ptr<Task<S>>> tasks_of_lengths;  // the same task at each of record.lengths
  std::vector<DataFile> files;                             // of the task and of initial values, with absolute paths
  std::unique_ptr<Network<S>> network;
  std::unique_ptr<Updater<S>> updater;  // null for a trained network
  Workers workers;
  std::vector<std::string> remarks;  // on settings that are allowed but probably a mistake

 private:
  void make_tasks_of_lengths(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options);
  Scores evaluate(const Task<S>& of, Split split, Watchdog& watchdog, const Evaluation& evaluation);
  Index steps_of(Index batches) const;  // rounded up: the last one may take batches of the next epoch
  void require_recorded_blocks() const;
  void require_blocks_to_start() const;
  void add_files_of_model(const LoadedExperiment& loaded);
  /// Sets the initial values. Errors about a file of them begin with the place of its key.
  void initialise();
  bool starts_from_file(const std::string& block) const;
  /// Replaces initial values by those of model.init_file.
  void start_from_file();
  void remark_on_batch();
  void remark_on_directions();
  void remark_on_length();
  void remark_on_splits(const LoadedExperiment& loaded);
  void remark_on_data(const LoadedExperiment& loaded);
  std::vector<S> noisy_;
  std::vector<std::pair<std::string, std::string>> files_of_model_;  // key and value
};

}  // namespace stiefel
