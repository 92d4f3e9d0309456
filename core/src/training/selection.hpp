// Which evaluation is the best, and when evaluations end the training early.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include <stiefel/archive.hpp>
#include <stiefel/export.hpp>
#include <stiefel/task.hpp>

#include "config/experiment.hpp"
#include "training/scores.hpp"

namespace stiefel {

/// The split whose evaluations select the best network.
inline Split selecting_split(const TrainOptions& train) {
  return train.select_on == "best_test" ? Split::test : Split::validation;
}

/// Throws Error when the task does not measure train.select, or when a setting needs evaluations and the task has no
/// batch to evaluate.
template <class S> void require_selection(const Experiment& experiment, const Task<S>& task);

/// Finds the best evaluation by train.select, and the end of training by train.patience and train.target.
class STIEFEL_API Selection {
 public:
  Selection(const TrainOptions& train, const std::vector<Quantity>& quantities);
  /// Takes the values of the quantities in an evaluation after a step. Returns whether it is the best so far.
  bool take(Index step, const std::vector<double>& values);
  /// Why training stops early; empty while it continues.
  std::string reason_to_stop() const;
  double best() const { return best_; }  ///< the selecting quantity of the best evaluation; NaN: none yet
  std::int64_t best_step() const { return best_step_; }  ///< −1: none yet
  void serialise(Archive& archive);

 private:
  bool better(double value, double other) const { return higher_is_better_ ? value > other : value < other; }

  TrainOptions train_;
  std::size_t selecting_ = 0;  // index of train.select in the quantities
  bool higher_is_better_ = false;
  double best_ = std::numeric_limits<double>::quiet_NaN();
  std::int64_t best_step_ = -1, waited_ = 0;  // waited_: evaluations since the best one
};

}  // namespace stiefel
