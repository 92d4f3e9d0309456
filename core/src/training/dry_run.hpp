// Checks an experiment before it runs: whether it is valid and fits into memory, and what it would take.
#pragma once

#include "training/run.hpp"

namespace stiefel {

/// What the run would be: parameters, memory, time.
struct DryRun {
  std::vector<std::string> lines, remarks;
};

/// Loads the data and checks that the sizes of the task, the network and the optimizers fit together and into memory;
/// throws Error if they do not. Allocates nothing that grows with these sizes, except for model.init_file. Returns
/// remarks on settings that are allowed but probably a mistake.
STIEFEL_API std::vector<std::string> check_experiment(const LoadedExperiment& loaded, Registry& registry,
                                                      const RunOptions& options);
/// Builds everything, takes two steps, of which it times the second, and writes nothing.
STIEFEL_API DryRun dry_run(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options);

}  // namespace stiefel
