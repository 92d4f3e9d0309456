// What a run records in results.h5: the tables, and a row of each when it is due.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/network.hpp"
#include "results/record/recorder_thread.hpp"
#include "training/updater.hpp"

namespace stiefel {

/// One row of /steps.
struct StepRow {
  Index step = 0;
  double loss = 0, penalty = 0;
  UpdateNorms norms;
  std::vector<double> rates;
  double seconds = 0;
};

/// One row of /epochs: an evaluation.
struct EvaluationRow {
  Index step = 0;
  double epoch = 0, train_loss = 0, seconds = 0;
  std::vector<double> validation, test;  // loss, then the metrics; empty when not evaluated
  bool best = false;
};

enum class Phase { data, param_map, passes, optimizer, record, evaluate };
inline constexpr const char* phase_names[] = {"data", "param_map", "passes", "optimizer", "record", "evaluate"};

template <class S> class STIEFEL_API Recording {
 public:
  Recording(RecorderThread& recorder, const Experiment& experiment, const Task<S>& task, Network<S>& network, const Updater<S>& updater);

  /// Rows of the loop itself also at the first step; maps are recorded before it, as step 0.
  static bool due(Index period, Index step) { return period > 0 && (step % period == 0 || step == 1); }
  static bool map_due(Index period, Index step) { return period > 0 && step % period == 0; }
  bool maps_due(Index step) const;
  const RecordOptions& periods() const { return periods_; }

  void step(const StepRow& row);
  void evaluation(const EvaluationRow& row);
  void final_test(Index step, const std::vector<double>& values);
  /// /outcome: a column for each quantity.
  void outcome(Index step, const std::map<std::string, Ratio>& quantities);
  /// Norms per time step; sequences shorter than the axis leave NaN.
  void norms(Index step, const PassResult& pass);
  /// Spectrum, orthogonality, scalars and traced blocks that are due, of the parameters last refreshed.
  void maps(Index step, Network<S>& network);
  void timing(Index step, const std::vector<double>& seconds);

 private:
  void define_steps(const Updater<S>& updater);
  void define_epochs(const Task<S>& task);
  void define_maps(Network<S>& network);
  void define_blocks(const Layout& layout);
  void spectrum(Index step, Index map, const Spectrum& spectrum);
  void orthogonality(Index step, Index map, Network<S>& network);
  void scalars(Index step, Index map, Network<S>& network);

  RecorderThread& recorder_;
  RecordOptions periods_;
  std::size_t metrics_ = 0;
  Index time_steps_ = 0;
  int steps_ = -1, epochs_ = -1, final_ = -1, gradient_ = -1, timing_ = -1;
  std::vector<int> spectrum_, orthogonality_, scalars_;
  std::vector<std::vector<std::string>> scalar_names_;  // of each map
  struct Trace {
    Index block, period;
    int table;
  };
  std::vector<Trace> traces_;
};

}  // namespace stiefel
