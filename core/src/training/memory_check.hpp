// Refuses an experiment that does not fit into memory, before anything is allocated for it.
#pragma once

#include "config/load.hpp"
#include "engine/model.hpp"
#include "training/run.hpp"

namespace stiefel {

/// Throws Error (Exit::exhausted) if training would take more than memory_limit(). The message names the key that
/// matters most.
template <class S> void require_memory(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                                       const Task<S>& task, const Model<S>& model);

}  // namespace stiefel
