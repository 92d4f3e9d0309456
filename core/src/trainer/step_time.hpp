// How long a training step takes: pass, gradient, update; batches ready, nothing recorded. And how long its innermost product takes alone.
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

/// Rate of PackedProduct::multiply with a matrix of the size of the first recurrent map and the columns of a slice.
struct KernelRate {
  Index rows = 0, cols = 0, columns = 0;
  double median = 0, slowest = 0, fastest = 0;  // floating point operations per second, all threads together
  Index repeats = 0;
};

/// As many threads as the experiment has multiply at once, each with columns of its own, for about `seconds`.
STIEFEL_API KernelRate measure_kernel(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, double seconds);

}  // namespace stiefel
