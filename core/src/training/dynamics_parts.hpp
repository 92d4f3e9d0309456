// The parts of analyse() that have a file of their own, and what they share.
#pragma once

#include "training/dynamics.hpp"
#include "training/lyapunov.hpp"
#include "training/session.hpp"

namespace stiefel {

/// f(batch, b) for the first `count` sequences of a split that has batches.
template <class F> void each_sequence(const Session<double>& session, Split split, Index count, F&& f) {
  Batch<double> batch;
  for (Index index = 0; count > 0 && index < session.batches(split); ++index) {
    session.task->fill(split, index, batch);
    for (Index b = 0; count > 0 && b < batch.sequences(); ++b, --count) f(batch, b);
  }
}

/// Both of these throw Error for a task that they cannot be computed for. The network must be refreshed.
FixedPoints fixed_points_of(Session<double>& session, const DynamicsOptions& options);
Distinguishability distinguishability_of(Session<double>& session, const DynamicsOptions& options, Index trained_steps);

/// For each layer, by its number.
std::vector<MemoryCapacity> memory_capacities_of(Session<double>& session, const DynamicsOptions& options);
/// The largest eigenvalue of Σₖ WᵏᵀC⁻¹Wᵏ, C = Σₖ WᵏWᵏᵀ, of W scaled so that its largest singular value is `gain`, below 1.
double fisher_memory(Matrix<double> W, double gain);

}  // namespace stiefel
