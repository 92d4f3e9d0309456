// Training as such: steps, evaluations, checkpoints, until the steps are done or something ends them.
#pragma once

#include "training/record_run.hpp"
#include "training/session.hpp"

namespace stiefel {

/// Trains from a checkpoint, or from the beginning if `from` is null. Errors are recorded in the run's files before
/// they are thrown.
template <class S> RunSummary train(const LoadedExperiment& loaded, Session<S>& session, RunRecord& record,
                                    const RunOptions& options, RunObserver& observer, const Checkpoint<S>* from);

/// The part "trainer" of a checkpoint before the first step.
StateItems state_of_training();

}  // namespace stiefel
