// An experiment before it runs: whether it fits, and what it would take.
#pragma once

#include "training/run.hpp"

namespace stiefel {

/// What the run would be: parameters, memory, time.
struct DryRun {
  std::vector<std::string> lines, remarks;
};

/// Loads the data and compares the sizes of the task, the network and the optimizers with each other and with the
/// memory, of which it takes none that grows with them; an Error when they do not fit. Returns remarks on settings
/// that are allowed but probably a mistake.
STIEFEL_API std::vector<std::string> check_experiment(const LoadedExperiment& loaded, Registry& registry,
                                                      const RunOptions& options);
/// Builds everything and takes one step; writes nothing.
STIEFEL_API DryRun dry_run(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options);

}  // namespace stiefel
