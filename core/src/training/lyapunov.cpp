#include "training/lyapunov.hpp"

#include <algorithm>
#include <cmath>

#include <stiefel/linear_algebra.hpp>

namespace stiefel {

template <class S>
std::vector<double> lyapunov_exponents(StepJacobian<S>& jacobian, Index count, Index every, Index burn_in) {
  Matrix<double> Q = Matrix<double>::Identity(jacobian.states(), count);
  std::vector<double> sums(std::size_t(count), 0.0);
  Index averaged = 0, since = 0;
  for (Index t = jacobian.steps() - 1; t >= 0; --t) {
    Matrix<S> V = Q.template cast<S>();
    jacobian.pull_back(t, V);
    Q = V.template cast<double>();
    const Index done = jacobian.steps() - t;
    if (++since < every && t > 0 && done != burn_in) continue;
    const Matrix<double> before = Q;
    orthonormalise(view(Q));
    const bool counted = done > burn_in;
    if (counted) averaged += since;
    for (Index i = 0; counted && i < count; ++i)
      sums[std::size_t(i)] += std::log(std::max(Q.col(i).dot(before.col(i)), 0.0));
    since = 0;
  }
  for (double& sum : sums) sum /= double(averaged);
  std::ranges::sort(sums, std::greater<>());
  return sums;
}

template <class S>
std::vector<double> lyapunov_summary(Network<S>& network, const Task<S>& task, Split split, Workers& workers) {
  const TaskShape shape = task.shape();
  Batch<S> batch, one;
  task.fill(split, 0, batch);
  const Index length = batch.length(0);
  one.resize(shape, 1, length);
  copy_inputs(batch, 0, shape, length, one, 0);
  network.take_state();
  const std::vector<CMat<S>> saved = network.trace(one, workers);
  std::vector<double> all;
  std::size_t number = 0;
  network.model().each_recurrence([&](const Layer<S>&, const Recurrence<S>& recurrence) {
    const Index count = std::min(recurrence.cell->state_rows(), most_exponents);
    StepJacobian<S> jacobian(network.model(), recurrence, saved[number++], count);
    const std::vector<double> found = lyapunov_exponents(jacobian, count, 1, length / 10);
    all.insert(all.end(), found.begin(), found.end());
  });
  std::ranges::sort(all, std::greater<>());
  return {all.front(), all[all.size() / 2], all.back()};
}

template std::vector<double> lyapunov_exponents(StepJacobian<float>&, Index, Index, Index);
template std::vector<double> lyapunov_exponents(StepJacobian<double>&, Index, Index, Index);
template std::vector<double> lyapunov_summary(Network<float>&, const Task<float>&, Split, Workers&);
template std::vector<double> lyapunov_summary(Network<double>&, const Task<double>&, Split, Workers&);

}  // namespace stiefel
