// The training loop: steps, evaluations and checkpoints, until the steps are done or something ends them.
//
// The way of a mini-batch:
//
//   make_task         training/session.cpp        creates the task of the experiment, in a GuardedTask
//   SequenceCsv       tasks/sequence_csv.cpp      for example: the constructor reads the files (tasks/formats); of a task
//                                                 that makes its data, GeneratedTask (tasks/generated.hpp) fills batches
//   GuardedTask       engine/guarded_task.cpp     guards every call of the task and checks its results
//   Prefetch          training/prefetch.hpp       a thread calls Task::fill() for the next batch
//   Trainer::step     training/trainer.cpp        calls take_step() under the watchdog
//   take_step         training/step.hpp           calls Session::refresh, Network::train and Session::update
//   Session::refresh  training/session.cpp        computes the maps from the parameters
//   Network::train    engine/network.cpp          computes loss and gradient; train_more() adds further batches
//   SlicePass         engine/slice_pass.cpp       runs the time loop of one slice of the batch
//   Scoring           engine/scoring.cpp          computes the outputs of a slice and calls Task::loss()
//   Network::reduce   engine/network.cpp          sums the slices; NetworkMap::finish makes the gradients of maps' parameters
//   Updater::step     training/updater.cpp        moves the parameters, called by Session::update
//   Recording         training/recording.cpp      makes the rows (training/rows.hpp) that are due
//   append_row        record/append_row.hpp       makes numbers of a row
//   RecorderThread    record/recorder_thread.cpp  queues them for its thread
//   ResultWriter      record/writer.cpp           collects them until publish() replaces results.h5
//   append_rows       record/table_file.cpp       writes them into the HDF5 file that replaces it
//
// Trainer::evaluate (trainer_evaluation.cpp) calls Session::evaluate (session.cpp) and publishes. Trainer::save
// publishes and, by RunRecord::save (run_record.cpp), has the recorder's thread call write_checkpoint (checkpoint.cpp).
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "training/clock.hpp"
#include "training/outcome.hpp"
#include "training/prefetch.hpp"
#include "training/recording.hpp"
#include "training/run_record.hpp"
#include "training/selection.hpp"
#include "training/session.hpp"
#include "training/step.hpp"
#include "training/watchdog.hpp"

namespace stiefel {

/// Trains from a checkpoint, or from the beginning if `from` is null. Errors are recorded in the run's files before
/// they are thrown.
template <class S> RunSummary train(const LoadedExperiment& loaded, Session<S>& session, RunRecord& record,
                                    const RunOptions& options, RunObserver& observer, const Checkpoint<S>* from);

/// The part "trainer" of a checkpoint, as it is before the first step.
StateItems state_of_training();

struct StepLosses {
  double sum = 0;          // since the last evaluation
  std::int64_t count = 0;  // number of losses in the sum
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
  /// Takes and records one step. Returns false if the run diverged.
  bool step();
  /// Writes a row to each table that is due.
  void record_step();
  void step_row();
  void record_maps();
  /// Evaluates and records the network after the last step, unless that has been done.
  void complete();
  void reached(Index step);
  /// Sets progress_.step_seconds to the median of the steps since the last call.
  void note_step_seconds();
  void record_timing();

  void evaluate();
  /// Stores the network as the best one so far.
  void keep_best();
  /// Returns loss and metrics of the network of `step`; nothing if there is no batch, or if it is stopped or diverges.
  Scores evaluate(Split split, Index step, const std::function<bool()>& stopped = {}, Outcome* outcome = nullptr);
  /// Stores the last network, then tests the best one or, if nothing was selected, the last.
  void finish_best();
  /// "valid loss 0.1 accuracy 0.9"
  std::string values_text(const char* split, const Scores& scores) const;

  void restore(const Checkpoint<S>& from);
  /// Removes or replaces networks and outcomes that an earlier process wrote after the checkpoint.
  void settle_networks();
  bool save_due();
  void save();
  /// Whether train.patience or train.target ends the training now.
  bool stops_early();

  /// The largest value of all ranks, so that they decide alike.
  int agreed(int own) const { return options_.ranks ? options_.ranks->largest(own) : own; }
  int signal() const { return agreed(options_.signal ? options_.signal->load() : 0); }
  bool stopped_by_signal();
  /// Ends the run as preempted, after saving a checkpoint unless this step has one.
  void stop(int exit_code, const std::string& reason);
  /// Calls work(), and ends the run as diverged after an Error (Exit::diverged) of a plugin or a decomposition.
  template <class F> void guard(F&& work);
  bool has_diverged() const { return status_.state == "diverged"; }
  /// Ends the run as diverged; stores the network with `batch`, if any. `trained`: whether a step moved the network.
  void diverged(Index step, const std::string& finding, const Batch<S>* batch, bool trained = true);
  /// Describes a loss that is not finite, and where such a number is first. `what`: its name, e.g. "the loss".
  std::string broken(std::string_view what, double loss, const Batch<S>& batch);
  /// End a process that hangs, after recording why. They run in a thread of the watchdog.
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
  StepResult made_;                  // by the last step that was taken
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
  Clock::time_point start_;  // of the run, as if its processes had run without pauses
};

}  // namespace stiefel
