// Fixed and slow points of s ← F(s, x) with a held input x (Sussillo and Barak 2013), by Newton's method.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <stiefel/linear_algebra.hpp>

#include "training/dynamics_parts.hpp"

namespace stiefel {
namespace {

// Of the speed ½‖F(s) − s‖²: what counts as fixed and as slow; two points are one if no state differs by more than
// `same_point` (as in Golub and Sussillo 2018).
constexpr double fixed_speed = 1e-20, slow_speed = 1e-4, same_point = 1e-3;
constexpr Index most_iterations = 100;

Batch<double> held_input(const TaskShape& shape, const std::vector<double>& input) {
  Batch<double> held;
  held.resize(shape, 1, 1);
  const auto refuse = [](const std::string& what) { throw Error("--input: " + what); };
  if (shape.input == InputKind::dense && !input.empty()) {
    if (Index(input.size()) != shape.input_size)
      refuse(fmt::format("the task has {} inputs, got {}", shape.input_size, input.size()));
    std::ranges::copy(input, held.input(0, 0).begin());
  }
  if (shape.input == InputKind::symbols) {
    const double symbol = input.empty() ? -1 : input[0];
    if (input.size() > 1 || symbol != std::floor(symbol) || symbol < -1 || symbol >= double(shape.input_size))
      refuse(fmt::format("the task reads one symbol from 0 to {}", shape.input_size - 1));
    held.symbol(0, 0) = std::int32_t(symbol);
  }
  if (shape.input == InputKind::none && !input.empty()) refuse("the task has no input");
  return held;
}

/// States that the network takes at random steps of its sequences, one in each column, and noise: half of the
/// deviation of each state.
Matrix<double> starts_of(Session<double>& session, const DynamicsOptions& options) {
  const TaskShape shape = session.task->shape();
  Rng rng(session.experiment.seed, "fixed points");
  Batch<double> cut;
  cut.resize(shape, options.fixed_points, shape.steps);
  for (Index filled = 0; filled < options.fixed_points;)
    each_sequence(session, options.split, options.fixed_points - filled, [&](Batch<double>& batch, Index b) {
      cut.length(filled) = rng.integer(1, batch.length(b) + 1);
      copy_inputs(batch, b, shape, cut.length(filled), cut, filled);
      ++filled;
    });
  session.network->take_state();
  session.network->advance(cut, session.workers);
  Matrix<double> starts = session.network->take_state();
  const Vector<double> mean = starts.rowwise().mean();
  const Vector<double> deviation =
      ((starts.colwise() - mean).rowwise().squaredNorm() / double(starts.cols())).cwiseSqrt();
  for (Index j = 0; j < starts.cols(); ++j)
    for (Index i = 0; i < starts.rows(); ++i) starts(i, j) += 0.5 * deviation(i) * rng.normal();
  return starts;
}

/// One step from a state, and the Jacobian of each layer with respect to its own states.
class Step {
 public:
  Step(Session<double>& session, Batch<double> held) : session_(session), held_(std::move(held)) {}

  struct Block {
    Index first, states;      // rows of the state
    Vector<double> residual;  // F(s) − s
    Matrix<double> J;         // empty if it was not asked for
    double speed() const { return 0.5 * residual.squaredNorm(); }
  };
  std::vector<Block> operator()(const Vector<double>& state, bool jacobians) {
    Network<double>& network = *session_.network;
    network.give_state(state);
    const std::vector<CMat<double>> saved = network.trace(held_, session_.workers);
    std::vector<Block> blocks;
    network.model().each_recurrence([&](const Layer<double>&, const Recurrence<double>& recurrence) {
      const Index states = recurrence.cell->state_rows();
      StepJacobian<double> jacobian(network.model(), recurrence, saved[blocks.size()], std::max(states, Index(1)));
      Block& block = blocks.emplace_back(Block{recurrence.state, states, {}, {}});
      block.residual = jacobian.state(0) - state.segment(block.first, states);
      if (!jacobians) return;
      Matrix<double> transposed = Matrix<double>::Identity(states, states);
      jacobian.pull_back(0, transposed);
      block.J = transposed.transpose();
    });
    return blocks;
  }

 private:
  Session<double>& session_;
  Batch<double> held_;
};

/// Newton's method with step halving on the states of one layer; those before it are at rest.
void solve_layer(Step& step, std::size_t layer, Vector<double>& state) {
  for (Index iteration = 0; iteration < most_iterations; ++iteration) {
    Step::Block block = step(state, true)[layer];
    const double speed = block.speed();
    if (!(speed >= fixed_speed)) return;
    Matrix<double> move = block.residual;
    block.J.diagonal().array() -= 1;
    try {
      solve(view(block.J), view(move));
    } catch (const Error&) {
      return;  // singular: a line of fixed points, or a state that is not finite
    }
    const Vector<double> before = state;
    double factor = 1;
    for (; factor > 1e-6; factor /= 2) {
      state = before;
      state.segment(block.first, block.states) -= factor * move.col(0);
      if (step(state, false)[layer].speed() < (1 - 1e-4 * factor) * speed) break;
    }
    if (factor > 1e-6) continue;
    state = before;
    return;
  }
}

}  // namespace

FixedPoints fixed_points_of(Session<double>& session, const DynamicsOptions& options) {
  Step step(session, held_input(session.task->shape(), options.input));
  const Matrix<double> starts = starts_of(session, options);
  FixedPoints found;
  found.starts = starts.cols();
  for (Index start = 0; start < starts.cols(); ++start) {
    Vector<double> state = starts.col(start);
    for (std::size_t layer = 0; layer < session.network->model().layers.size(); ++layer)
      solve_layer(step, layer, state);
    const std::vector<Step::Block> blocks = step(state, true);
    double speed = 0;
    for (const Step::Block& block : blocks) speed += block.speed();
    if (!(speed < fixed_speed)) {
      ++(speed < slow_speed ? found.slow : found.moving);
      continue;
    }
    const auto known = std::ranges::find_if(found.points, [&](const FixedPoint& point) {
      return (Eigen::Map<const Vector<double>>(point.state.data(), state.size()) - state).cwiseAbs().maxCoeff() <=
             same_point;
    });
    if (known != found.points.end()) {
      ++known->starts;
      continue;
    }
    FixedPoint& point = found.points.emplace_back();
    point.starts = 1;
    point.state.assign(state.begin(), state.end());
    for (Step::Block block : blocks) {
      std::vector<std::complex<double>> values(std::size_t(block.states));
      eigenvalues(view(block.J), std::span(values));
      for (const std::complex<double>& value : values) point.unstable += std::abs(value) > 1;
      point.eigenvalues.insert(point.eigenvalues.end(), values.begin(), values.end());
    }
  }
  session.network->take_state();
  std::ranges::stable_sort(found.points, std::ranges::greater(), &FixedPoint::starts);
  return found;
}

}  // namespace stiefel
