// How much of past inputs the states of a network tell a linear readout (Jaeger 2001), and, of a linear network with
// noise, how much Fisher information (Ganguli, Huh and Sompolinsky 2008).
#include <algorithm>
#include <cmath>

#include <stiefel/linear_algebra.hpp>

#include "training/dynamics_parts.hpp"

namespace stiefel {
namespace {

constexpr Index floor_lags = 20;  // beyond the sum, for what an estimate finds by chance

struct Distribution {
  Vector<double> mean, deviation;
};

/// Of the inputs of the first 100 sequences.
Distribution distribution_of_inputs(const Session<double>& session, Split split, const TaskShape& shape) {
  Vector<double> sum = Vector<double>::Zero(shape.input_size), squares = sum;
  double count = 0;
  each_sequence(session, split, 100, [&](Batch<double>& batch, Index b) {
    for (Index t = 0; t < batch.length(b); ++t, ++count) {
      const auto x = Eigen::Map<const Vector<double>>(batch.input(t, b).data(), shape.input_size);
      sum += x;
      squares += x.cwiseAbs2();
    }
  });
  return {sum / count, (squares / count - (sum / count).cwiseAbs2()).cwiseMax(0).cwiseSqrt()};
}

/// r² between the columns of A and those of B; 0 if one does not vary.
double squared_correlation(const Vector<double>& a, const Vector<double>& b) {
  const Vector<double> x = a.array() - a.mean(), y = b.array() - b.mean();
  const double both = x.squaredNorm() * y.squaredNorm();
  return both > 0 ? x.dot(y) * x.dot(y) / both : 0;
}

}  // namespace

std::vector<MemoryCapacity> memory_capacities_of(Session<double>& session, const DynamicsOptions& options) {
  Network<double>& network = *session.network;
  const TaskShape shape = session.task->shape();
  if (shape.input != InputKind::dense) throw Error("--memory needs a task whose inputs are numbers");
  const Distribution drawn = distribution_of_inputs(session, options.split, shape);
  Index most = 0;
  network.model().each_recurrence(
      [&](const Layer<double>&, const Recurrence<double>& r) { most = std::max(most, r.cell->state_rows()); });
  const Index washout = 2 * most + floor_lags, half = std::max(Index(4000), 20 * most), steps = washout + 2 * half;
  Rng rng(session.experiment.seed, "memory capacity");
  Batch<double> driven;
  driven.resize(shape, 1, steps);
  Matrix<double> inputs(steps, shape.input_size);
  for (Index t = 0; t < steps; ++t)
    for (Index i = 0; i < shape.input_size; ++i)
      driven.input(t, 0)[std::size_t(i)] = inputs(t, i) =
          drawn.mean(i) + drawn.deviation(i) * rng.uniform(-1, 1) * std::sqrt(3.0);
  network.take_state();
  const std::vector<CMat<double>> saved = network.trace(driven, session.workers);
  std::vector<MemoryCapacity> found;
  network.model().each_recurrence([&](const Layer<double>&, const Recurrence<double>& recurrence) {
    StepJacobian<double> states(network.model(), recurrence, saved[found.size()], 1);
    const Index n = states.states(), lags = 2 * n;
    Matrix<double> A(n + 1, 2 * half), G(n + 1, n + 1);
    for (Index t = 0; t < 2 * half; ++t) A.col(t) << states.state(washout + t), 1;
    if (!A.allFinite()) throw Error("the states of the network are not finite on random inputs", Exit::diverged);
    const auto known = A.leftCols(half), unknown = A.rightCols(half);
    multiply<double>(known, transposed(known), view(G));
    G.diagonal().array() += 1e-10 * G.diagonal().mean();
    MemoryCapacity& memory = found.emplace_back();
    memory.lags = lags;
    for (Index i = 0; i < shape.input_size; ++i) {
      const Index all = lags + floor_lags;
      Matrix<double> past(2 * half, all), weights(n + 1, all), copy = G;
      for (Index k = 0; k < all; ++k) past.col(k) = inputs.col(i).segment(washout - k, 2 * half);
      multiply<double>(known, past.topRows(half), view(weights));
      solve(view(copy), view(weights));
      const Matrix<double> guess = product(transposed(unknown), weights);
      std::vector<double> r2;
      for (Index k = 0; k < all; ++k) r2.push_back(squared_correlation(guess.col(k), past.col(k).tail(half)));
      double chance = 0;
      for (Index k = lags; k < all; ++k) chance += r2[std::size_t(k)] / double(floor_lags);
      r2.resize(std::size_t(lags));
      double sum = 0;
      for (double& value : r2) sum += value = std::max(value - chance, 0.0);
      memory.of_inputs.push_back(std::move(r2));
      memory.total += sum;
    }
  });
  return found;
}

double fisher_memory(Matrix<double> W, double gain) {
  std::vector<double> values(std::size_t(W.rows()));
  Matrix<double> copy = W;
  singular_values(view(copy), values);
  if (values[0] > 0) W *= gain / values[0];
  // Both sums by doubling: Σ_{k < 2m} is that of k < m and its image under Wᵐ.
  const auto sum = [](const Matrix<double>& middle, Matrix<double> A, bool adjoint) {
    Matrix<double> total = middle;
    for (int doubling = 0; doubling < 40 && A.squaredNorm() > 1e-32; ++doubling) {
      const Matrix<double> image =
          adjoint ? product(transposed(A), product(total, A)) : product(A, product(total, transposed(A)));
      total += image;
      A = product(A, A);
    }
    return total;
  };
  Matrix<double> C = sum(Matrix<double>::Identity(W.rows(), W.cols()), W, false);
  invert(view(C));
  Matrix<double> J = sum(C, W, true);
  hermitian_eigenvalues(view(J), values);
  return values.back();
}

}  // namespace stiefel
