// The training loop: steps, evaluations and checkpoints, until the steps are done or something ends them.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "training/clock.hpp"
#include "training/outcome.hpp"
#include "training/prefetch.hpp"
#include "training/record_run.hpp"
#include "training/recording.hpp"
#include "training/selection.hpp"
#include "training/session.hpp"
#include "training/step.hpp"
#include "training/watchdog.hpp"

namespace stiefel {

/// Trains from a checkpoint, or from the beginning if `from` is null. Errors are recorded in the run's files before
/// they are thrown.
template <class S> RunSummary train(const LoadedExperiment& loaded, Session<S>& session, RunRecord& record,
                                    const RunOptions& options, RunObserver& observer, const Checkpoint<S>* from);

/// The part "trainer" of a checkpoint before the first step.
StateItems state_of_training();

/// The losses of the steps.
struct StepLosses {
  double sum = 0;          // since the last evaluation
  std::int64_t count = 0;  // of them
  double running = std::numeric_limits<double>::quiet_NaN();

  void add(double loss);
  double mean() const { return count > 0 ? sum / double(count) : std::numeric_limits<double>::quiet_NaN(); }
  void serialise(Archive& archive);
};

template <class S> class Trainer {
 public:
  /// `from`: a checkpoint to resume from, or null.
  Trainer(const LoadedExperiment& loaded, Session<S>& session, RunRecord& record, const RunOptions& options,
          RunObserver& observer, const Checkpoint<S>* from);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  RunSummary run();

 private:
  /// False when the numbers broke.
  bool step();
  /// A row of each table that is due.
  void record_step();
  void step_row();
  void record_maps();
  /// Evaluates and records the last network, unless that has been done.
  void complete();
  void reached(Index step);
  /// The median of the steps since the last call.
  void take_step_seconds();
  void record_timing();

  void evaluate();
  /// The best network so far is stored and kept.
  void keep_best();
  /// Loss and metrics of a network of a step; empty when there is no batch, and when it was stopped or diverged.
  std::vector<double> evaluate(Split split, Index step, const std::function<bool()>& stopped = {},
                               Outcome* outcome = nullptr);
  /// The best network, or the last one when nothing selects, on the test split.
  void finish_best();
  /// "valid loss 0.1 accuracy 0.9"
  std::string values_text(const char* split, const std::vector<double>& values) const;

  void restore(const Checkpoint<S>& from);
  /// Networks that an earlier process saved after the checkpoint do not belong to the run any more.
  void settle_networks();
  bool save_due();
  void save();
  /// By train.patience or train.target.
  bool stops_early();

  /// The largest of what the ranks have.
  int agreed(int own) const { return options_.ranks ? options_.ranks->largest(own) : own; }
  int signal() const { return agreed(options_.signal ? options_.signal->load() : 0); }
  bool stopped_by_signal();
  /// Writes a checkpoint with all that is needed to resume.
  void stop(int exit_code, const std::string& reason);
  /// Numbers that break in a plugin or in a decomposition end the run as those of the loss do.
  template <class F> void guard(F&& work);
  bool has_diverged() const { return status_.state == "diverged"; }
  /// `trained`: whether a step has moved the network.
  void diverged(Index step, const std::string& finding, const Batch<S>* batch, bool trained = true);
  /// `what`: of whose loss, e.g. "the loss". Names where the first broken number is: in the network or in the batch.
  std::string broken(std::string_view what, double loss, const Batch<S>& batch);
  /// These run in a thread of the watchdog: the training's own will not return.
  [[noreturn]] void overdue();
  [[noreturn]] void overdue(int signal, double seconds);
  [[noreturn]] void end_hanging(std::string message, int exit_code);

  const Experiment& experiment_;
  Session<S>& session_;
  RunRecord& record_;
  const RunOptions& options_;
  RunObserver& observer_;
  const Batch<S>* batch_ = nullptr;  // the last one trained on
  Index begun_ = 0;                  // the last step that was begun
  StepResult made_;                  // by this step
  std::string watched_;              // what the watchdog waits for
  Watchdog watchdog_{experiment_.train.step_limit, [this] { overdue(); }, options_.signal,
                     [this](int number, double seconds) { overdue(number, seconds); }};
  Recording<S> recording_;
  Prefetch<S> batches_;
  Stopwatch watch_;
  Progress progress_;
  Status status_;
  StepLosses losses_;
  Selection selection_;
  NetworkState<S> best_;
  Index saved_ = 0, timed_ = 0;  // steps of the last checkpoint and of the last row of /timing
  Clock::time_point saved_at_ = Clock::now();
  double evaluated_at_;
  std::vector<double> durations_;
  Clock::time_point start_;  // of the run, as if its processes had followed each other at once
};

}  // namespace stiefel
