// Successive halving with synchronous rungs (Jamieson & Talwalkar 2016; sizes as in ASHA, Li et al. 2020): when all runs of a rung have
// reached its step, the best ⌊n/factor⌋ of n, at least one, go on. Which ones is a function of the runs' results alone, so it is the
// same for any number of workers, in any order, and after any interruption.
#pragma once

#include <vector>

#include "sweep/state.hpp"
#include "sweep/sweep.hpp"

namespace stiefel {

/// How far a run may go for now.
struct Target {
  Index step = 0;         ///< 0: to its end
  bool left_out = false;  ///< it was not among the best
};

/// One for each run. Rungs that are complete are written to rungs/STEP.tsv. Without halving every run goes to its end.
STIEFEL_API std::vector<Target> targets_of(const SweepFolder& folder, const std::vector<RunLook>& looks);

/// Indices of the best ⌊n/factor⌋ of n values, at least one, in the order of the runs. NaN is worst and does not go on; of equal values the
/// first does.
STIEFEL_API std::vector<std::size_t> best_of(const std::vector<double>& values, Index factor, bool highest);

}  // namespace stiefel
