// Successive halving with synchronous rungs (Jamieson & Talwalkar 2016; sizes as in ASHA, Li et al. 2020): when all
// runs of a rung have reached its step, the best ⌊n/factor⌋ of n settings, at least one, continue with all of their
// seeds; a setting is as good as the mean of its seeds. The choice depends only on the runs' results, so it is the same
// for any number of workers, in any order, and after any interruption.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sweep/state.hpp"
#include "sweep/sweep.hpp"

namespace stiefel {

/// How far a run may train for now.
struct Target {
  Index step = 0;         ///< 0: to its end
  bool left_out = false;  ///< it was not among the best
};

/// Decides which runs continue after each rung. A decision is made once, when all runs of the rung have reached it.
class STIEFEL_API Rungs {
 public:
  explicit Rungs(const SweepFolder& folder) : folder_(folder) {}

  /// One target per run. Complete rungs are written to rungs/STEP.tsv. Without halving every run trains to its end.
  /// Throws Error if a run does not record the metric.
  std::vector<Target> targets(const std::vector<RunLook>& looks);
  /// Returns why no run continues; empty if one does.
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

/// ⌊settings/factor⌋, at least one.
std::size_t survivor_count(std::size_t settings, Index factor);
/// Returns the values of each run without its seed or, if the runs differ only in the seed, with it.
std::vector<std::vector<std::string>> settings_of(const Sweep& sweep);
/// Returns the indices of the best ⌊n/factor⌋ of n values, at least one, in the order of the runs. NaN is never chosen,
/// so there may be fewer; of equal values the first one is.
STIEFEL_API std::vector<std::size_t> best_of(const std::vector<double>& values, Index factor, bool highest);
/// Does the same with the mean over the runs of each setting; returns all runs of the best settings.
STIEFEL_API std::vector<std::size_t> best_settings(const std::vector<std::vector<std::string>>& settings,
                                                   const std::vector<double>& values, Index factor, bool highest);

}  // namespace stiefel
