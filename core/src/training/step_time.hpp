// Times a training step (pass, gradient, update) on a batch that is ready, without recording, and its innermost
// product.
#pragma once

#include "config/load.hpp"
#include "training/run.hpp"
#include "training/throughput.hpp"

namespace stiefel {

/// Seconds or operations of the parts of a step.
struct StepParts {
  double refresh = 0;   // the maps from their parameters
  double forward = 0;   // the time loop
  double backward = 0;  // the loss, the time loop back, the gradients of all parameters
  double update = 0;    // the optimizers; their operations are not counted
  double sum() const { return refresh + forward + backward + update; }
};

struct StepTime {
  double median = 0, fastest = 0, slowest = 0;  // seconds
  StepParts median_parts;                       // each part's own median
  StepParts flops;                              // floating point operations of a step: maps, input and readout
  bool dense = false;                           // route of the first map
  Index repeats = 0;
};

/// Repeats steps for about `seconds`, at least three after a warm-up.
STIEFEL_API StepTime measure_step(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                                  double seconds);

/// Rate of PackedProduct::multiply with a matrix of the size of the first recurrent map and the columns of a slice.
struct KernelRate {
  Index rows = 0, cols = 0, columns = 0;
  Rate rate{};  // floating point operations
};

/// Multiplies in all threads of the experiment at once, each with its own columns, for about `seconds`. Throws Error if
/// the network has no recurrent map.
STIEFEL_API KernelRate measure_kernel(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                                      double seconds);

}  // namespace stiefel
