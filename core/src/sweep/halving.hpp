// Successive halving with synchronous rungs (Jamieson & Talwalkar 2016; sizes as in ASHA, Li et al. 2020): when all
// runs of a rung have reached its step, the best ⌊n/factor⌋ of n, at least one, continue. The choice depends only on
// the runs' results, so it is the same for any number of workers, in any order, and after any interruption.
#pragma once

#include <map>
#include <vector>

#include "sweep/state.hpp"
#include "sweep/sweep.hpp"

namespace stiefel {

/// How far a run may train for now.
struct Target {
  Index step = 0;         ///< 0: to its end
  bool left_out = false;  ///< it was not among the best
};

/// The rungs of a sweep; a decision is made once, from the results of the runs that have reached it.
class STIEFEL_API Rungs {
 public:
  explicit Rungs(const SweepFolder& folder) : folder_(folder) {}

  /// One target per run. Complete rungs are written to rungs/STEP.tsv. Without halving every run trains to its end.
  /// Throws Error if a run does not record the metric.
  std::vector<Target> targets(const std::vector<RunLook>& looks);
  /// Why no run continues, if that is the case with these looks; else empty.
  std::string why_none_continues(const std::vector<RunLook>& looks);
  /// Throws Error if a run that has reached a rung cannot be ranked.
  void require_metric(const SweepRun& run) const;

 private:
  struct Decision {
    std::vector<std::size_t> runs, survivors;
  };
  std::vector<std::size_t> survivors(Index step, const std::vector<std::size_t>& runs,
                                     const std::vector<RunLook>& looks);

  const SweepFolder& folder_;
  std::map<Index, Decision> decided_;  // by step
};

/// ⌊runs/factor⌋, at least one.
std::size_t survivor_count(std::size_t runs, Index factor);
/// Indices of the best ⌊n/factor⌋ of n values, at least one, in the order of the runs. NaN is worst and does not
/// continue; of equal values the first one does.
STIEFEL_API std::vector<std::size_t> best_of(const std::vector<double>& values, Index factor, bool highest);

}  // namespace stiefel
