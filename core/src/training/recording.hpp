// What a run records in results.h5: the tables, and a row of each when it is due.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/network.hpp"
#include "record/recorder_thread.hpp"
#include "training/rows.hpp"
#include "training/stopwatch.hpp"
#include "training/updater.hpp"

namespace stiefel {

template <class S> class STIEFEL_API Recording {
 public:
  Recording(RecorderThread& recorder, const Experiment& experiment, const Task<S>& task, Network<S>& network,
            const Updater<S>& updater, Index steps);

  /// Whether a row is due: once a period and at the last step. /steps and /gradient also get a row of step 1, maps one
  /// of step 0.
  bool step_due(Index step) const { return due(steps_, periods_.loss, step, true); }
  bool norms_due(Index step) const { return due(gradient_[0], periods_.gradient_norms, step, true); }
  bool maps_due(Index step) const;
  void end_after(Index step) { last_step_ = step; }
  /// Whether the last row of /epochs is of this epoch.
  bool has_evaluation_of(double epoch) const { return recorder_.last_row(epochs_) == epoch; }

  void step(const StepRow& row);
  void evaluation(EvaluationRow row);
  void final_test(Index step, Scores scores);
  /// Writes /outcome, with a column for each quantity.
  void outcome(Index step, const std::map<std::string, Ratio>& quantities);
  /// Writes the norms per time step; those of time steps beyond the batch are NaN.
  void norms(Index step, const PassResult& pass);
  /// Writes the spectrum, orthogonality, scalars and traced blocks that are due, of the parameters last refreshed.
  /// Returns a sentence the first time that a map breaks its claim.
  std::string maps(Index step, Network<S>& network);
  void timing(Index step, std::vector<double> seconds);

 private:
  /// Defines a table if it gets rows, or if the results that are continued have rows of it. Returns its number or −1.
  int define(Index period, Table table);
  /// Whether a table needs a row of the step and does not have it yet. `first`: also of step 1.
  bool due(int table, Index period, Index step, bool first = false) const;
  void define_maps(Network<S>& network);
  void define_blocks(const Layout& layout);
  void orthogonality(Index step, Index map, Network<S>& network);
  void scalars(Index step, Index map, Network<S>& network);

  RecorderThread& recorder_;
  RecordOptions periods_;
  std::vector<Metric> metrics_;
  Index time_steps_ = 0, last_step_ = 0;
  // Numbers of the tables; −1: it gets no rows.
  int steps_ = -1, epochs_ = -1, final_ = -1, timing_ = -1;
  std::vector<int> gradient_;  // of each layer
  std::vector<int> spectrum_, orthogonality_, scalars_;
  std::vector<std::vector<std::string>> scalar_names_;  // of each map
  struct Trace {
    Index block, period;
    int table;
  };
  std::vector<Trace> traces_;
  bool claims_kept_ = true;
};

}  // namespace stiefel
