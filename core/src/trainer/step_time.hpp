// How long a training step takes: pass, gradient, update; batches ready, nothing recorded.
#pragma once

#include "config/load.hpp"
#include "trainer/trainer.hpp"

namespace stiefel {

struct StepTime {
  double median = 0, fastest = 0, slowest = 0;  // seconds
  double flops = 0;                             // floating point operations of a step: maps, input and readout
  Index repeats = 0;
};

/// Repeats steps for about `seconds`, at least three after a warm-up.
STIEFEL_API StepTime measure_step(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, double seconds);

}  // namespace stiefel
