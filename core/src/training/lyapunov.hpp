// Lyapunov exponents of a network along sequences of its task.
#pragma once

#include <vector>

#include "engine/network.hpp"
#include "engine/step_jacobian.hpp"

namespace stiefel {

constexpr Index most_exponents = 128;

/// Copies the inputs of the first `steps` steps of sequence b into sequence `to` of a batch of the same shape.
template <class S>
void copy_inputs(Batch<S>& from, Index b, const TaskShape& shape, Index steps, Batch<S>& batch, Index to) {
  for (Index t = 0; t < steps; ++t) {
    if (shape.input == InputKind::symbols) batch.symbol(t, to) = from.symbol(t, b);
    if (shape.input == InputKind::dense) std::ranges::copy(from.input(t, b), batch.input(t, to).begin());
  }
}

/// The `count` largest exponents along one sequence, in nats per step and in descending order: the mean of log R_ii of
/// Q R = J_tᵀ Q over the steps before the burn-in, which is at the end of the sequence, with an orthonormalisation every
/// `every` steps (Benettin et al. 1980). Q is double whatever S is.
template <class S>
std::vector<double> lyapunov_exponents(StepJacobian<S>& jacobian, Index count, Index every, Index burn_in);

/// The largest, the median and the smallest exponent of all layers along the first sequence of a split that has batches.
/// The network must be refreshed and not bidirectional; its carried state is lost.
template <class S>
std::vector<double> lyapunov_summary(Network<S>& network, const Task<S>& task, Split split, Workers& workers);

}  // namespace stiefel
