#include "training/dynamics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <stiefel/linear_algebra.hpp>

#include "base/atomic_file.hpp"
#include "record/hdf5.hpp"
#include "sdk/diagnostics.hpp"
#include "training/checkpoint.hpp"
#include "training/dynamics_parts.hpp"

namespace stiefel {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The number of exponents whose sum stays above zero, and the share of the next that brings it to zero.
double kaplan_yorke(const std::vector<double>& exponents, bool all) {
  double sum = 0;
  for (std::size_t i = 0; i < exponents.size(); ++i) {
    if (sum + exponents[i] < 0) return double(i) + sum / -exponents[i];
    sum += exponents[i];
  }
  return all ? double(exponents.size()) : nan;
}

std::vector<double> singular_values_at(StepJacobian<double>& jacobian, Index t) {
  Matrix<double> J = Matrix<double>::Identity(jacobian.states(), jacobian.states());
  jacobian.pull_back(t, J);
  std::vector<double> values(std::size_t(jacobian.states()));
  singular_values(view(J), values);
  return values;
}

/// Sums over states, for their covariance.
struct Moments {
  Vector<double> sum;
  Matrix<double> squares;
  Index count = 0;

  void add(const StepJacobian<double>& jacobian) {
    if (count == 0) {
      sum = Vector<double>::Zero(jacobian.states());
      squares = Matrix<double>::Zero(jacobian.states(), jacobian.states());
    }
    Matrix<double> states(jacobian.states(), jacobian.steps());
    for (Index t = 0; t < jacobian.steps(); ++t) states.col(t) = jacobian.state(t);
    if (!states.allFinite())
      throw Error("the states of the network are not finite on these sequences: it diverges there", Exit::diverged);
    sum += states.rowwise().sum();
    add_product<double>(states, transposed(states), view(squares));
    count += jacobian.steps();
  }
  /// Eigenvalues of the covariance; none is negative.
  std::vector<double> variances() const {
    Matrix<double> C = (squares - sum * sum.transpose() / double(count)) / double(count);
    std::vector<double> values(std::size_t(C.rows()));
    hermitian_eigenvalues(view(C), values);
    for (double& value : values) value = std::max(value, 0.0);
    return values;
  }
};

void note_dimension(LayerDynamics& layer, const std::vector<double>& variances) {
  double sum = 0, squares = 0, roots = 0, entropy = 0;
  for (const double v : variances) sum += v, squares += v * v, roots += std::sqrt(v);
  for (const double v : variances)
    if (const double p = std::sqrt(v) / roots; p > 0) entropy -= p * std::log(p);
  layer.participation_ratio = squares > 0 ? sum * sum / squares : 0;
  layer.effective_rank = roots > 0 ? std::exp(entropy) : 0;
}

std::vector<MapNormality> normality_of(const Model<double>& model) {
  std::vector<MapNormality> found;
  for (const auto& [name, map, blocks] : model.maps) {
    const Plugged<Parametrisation<double>>& plugin = map.plugin();
    if (plugin->rows() != plugin->cols()) continue;
    const double pairs = plugin->complex_pairs() ? 2 : 1;
    const Matrix<double> W = plugin.call("apply", [&] { return matrix_of(*plugin); });
    const double norm = W.squaredNorm() / pairs;
    double eigen = 0;
    for (const auto& z : plugin.call("spectrum", [&] { return plugin->spectrum(); }).eigenvalues) eigen += std::norm(z);
    const double departure = std::sqrt(std::max(norm - eigen, 0.0));
    found.push_back(
        {name, departure, norm > 0 ? departure / std::sqrt(norm) : 0, fisher_memory(W, 0.9), fisher_memory(W, 0.99)});
  }
  return found;
}

void require_steps(const DynamicsOptions& options, Index length, Index burn_in) {
  if (length <= burn_in)
    throw Error(fmt::format("a sequence of {} steps has none left after --burn-in {}; choose a smaller one", length,
                            options.burn_in));
}

}  // namespace

Dynamics analyse(const LoadedExperiment& loaded, Registry& registry, const RunOptions& run,
                 const DynamicsOptions& options) {
  Session<double> session(loaded, registry, run, Extent::network);
  Network<double>& network = *session.network;
  const Model<double>& model = network.model();
  if (model.bidirectional())
    throw Error("a bidirectional network has no state that passes from step to step; analyse another network");
  Dynamics found;
  found.step = read_network(options.network, network);
  network.refresh();
  const TaskShape shape = session.task->shape();
  if (session.batches(options.split) == 0)
    throw Error(fmt::format("the task {} has no {} split; choose another with --split", loaded.experiment.task.plugin,
                            name_of(options.split)));
  std::vector<Moments> moments(model.layers.size());
  each_sequence(session, options.split, options.sequences, [&](Batch<double>& batch, Index b) {
    const bool first = found.lengths.empty();
    const Index length = batch.length(b), burn_in = options.burn_in < 0 ? length / 10 : options.burn_in;
    require_steps(options, length, burn_in);
    found.lengths.push_back(length);
    network.take_state();
    Batch<double> one;
    one.resize(shape, 1, length);
    copy_inputs(batch, b, shape, length, one, 0);
    const std::vector<CMat<double>> saved = network.trace(one, session.workers);
    Index number = 0;
    model.each_recurrence([&](const Layer<double>&, const Recurrence<double>& recurrence) {
      const Index states = recurrence.cell->state_rows();
      const Index count = std::min(states, options.exponents > 0 ? options.exponents : most_exponents);
      StepJacobian<double> several(model, recurrence, saved[std::size_t(number)], count);
      if (first) found.layers.emplace_back().states = states;
      LayerDynamics& layer = found.layers[std::size_t(number)];
      moments[std::size_t(number)].add(several);
      layer.exponents.push_back(lyapunov_exponents(several, count, options.every, burn_in));
      if (first) {
        StepJacobian<double> whole(model, recurrence, saved[std::size_t(number)], states);
        const Index wanted = std::min(options.jacobians, length);
        for (Index i = 0; i < wanted; ++i) {
          layer.jacobian_steps.push_back((2 * i + 1) * length / (2 * wanted));
          layer.singular_values.push_back(singular_values_at(whole, layer.jacobian_steps.back()));
        }
      }
      ++number;
    });
  });
  for (std::size_t l = 0; l < found.layers.size(); ++l) {
    LayerDynamics& layer = found.layers[l];
    layer.mean.assign(layer.exponents[0].size(), 0.0);
    for (const std::vector<double>& one : layer.exponents)
      for (std::size_t i = 0; i < one.size(); ++i) layer.mean[i] += one[i] / double(layer.exponents.size());
    layer.kaplan_yorke = kaplan_yorke(layer.mean, Index(layer.mean.size()) == layer.states);
    for (const double exponent : layer.mean) layer.entropy_rate += std::max(exponent, 0.0);
    note_dimension(layer, moments[l].variances());
  }
  found.maps = normality_of(model);
  if (options.memory) found.memory = memory_capacities_of(session, options);
  if (options.fixed_points > 0) found.fixed_points = fixed_points_of(session, options);
  if (options.class_sequences > 0)
    found.distinguishability =
        distinguishability_of(session, options, run.trained ? run.trained->shape.steps : shape.steps);
  return found;
}

std::filesystem::path write_analysis(const std::filesystem::path& run, const Dynamics& found,
                                     const DynamicsOptions& options) {
  const std::filesystem::path path = run / "analysis.h5";
  AtomicFile target(path);
  hdf5::File file = hdf5::File::create(target.temporary());
  hdf5::Group& root = file.root();
  root.set_number("format_version", 1, hdf5::Type::i4);
  root.set_number("step", double(found.step), hdf5::Type::i8);
  root.set_text("network", options.network.filename().string());
  root.set_text("split", name_of(options.split));
  const auto write = [](const hdf5::Group& group, const std::string& name, const hdf5::Shape& shape, const auto& rows,
                        const std::string& meaning) {
    using T = std::conditional_t<std::is_same_v<std::decay_t<decltype(rows[0])>, Index>, std::int64_t, double>;
    std::vector<T> values;
    for (const auto& row : rows)
      if constexpr (requires { row.begin(); })
        values.insert(values.end(), row.begin(), row.end());
      else
        values.push_back(T(row));
    hdf5::Dataset dataset = group.create_dataset(name, {.type = hdf5::type_for<T>, .shape = shape, .chunk = {}});
    dataset.write(0, std::span<const T>(values));
    dataset.set_text("long_name", meaning);
  };
  write(root, "lengths", {found.lengths.size()}, found.lengths, "steps of the sequences");
  for (std::size_t l = 0; l < found.layers.size(); ++l) {
    const LayerDynamics& layer = found.layers[l];
    hdf5::Group group = root.make_group(fmt::format("layers/{}", l));
    write(group, "exponents", {layer.exponents.size(), layer.mean.size()}, layer.exponents,
          "Lyapunov exponents in nats per step, sequence × rank");
    write(group, "jacobian_steps", {layer.jacobian_steps.size()}, layer.jacobian_steps,
          "steps of the first sequence whose Jacobian was decomposed");
    write(group, "jacobian_singular_values", {layer.singular_values.size(), std::size_t(layer.states)},
          layer.singular_values, "singular values of the Jacobian of a step, step × rank");
    group.set_number("states", double(layer.states), hdf5::Type::i8);
    group.set_number("kaplan_yorke_dimension", layer.kaplan_yorke);
    group.set_number("entropy_rate", layer.entropy_rate);
    group.set_number("participation_ratio", layer.participation_ratio);
    group.set_number("effective_rank", layer.effective_rank);
  }
  for (const MapNormality& map : found.maps) {
    hdf5::Group group = root.make_group("maps/" + map.name);
    group.set_number("departure_from_normality", map.departure);
    group.set_number("relative_departure", map.relative);
    group.set_number("fisher_memory_at_gain_0.9", map.fisher_90);
    group.set_number("fisher_memory_at_gain_0.99", map.fisher_99);
  }
  for (std::size_t l = 0; l < found.memory.size(); ++l) {
    const MemoryCapacity& memory = found.memory[l];
    hdf5::Group group = root.make_group(fmt::format("layers/{}", l));
    write(group, "memory", {memory.of_inputs.size(), std::size_t(memory.lags)}, memory.of_inputs,
          "squared correlation of a linear readout with an input of that many steps ago, input × lag");
    group.set_number("memory_capacity", memory.total);
  }
  if (found.fixed_points) {
    hdf5::Group group = root.make_group("fixed_points");
    const std::vector<FixedPoint>& points = found.fixed_points->points;
    std::vector<std::vector<double>> states, eigenvalues;
    std::vector<Index> unstable, starts;
    for (const FixedPoint& point : points) {
      states.push_back(point.state);
      eigenvalues.emplace_back();
      for (const std::complex<double>& value : point.eigenvalues)
        eigenvalues.back().insert(eigenvalues.back().end(), {value.real(), value.imag()});
      unstable.push_back(point.unstable);
      starts.push_back(point.starts);
    }
    const std::size_t rows = points.empty() ? 0 : points[0].state.size();
    write(group, "states", {points.size(), rows}, states, "states at rest, point × state");
    write(group, "eigenvalues", {points.size(), rows, 2}, eigenvalues,
          "eigenvalues of the Jacobian of each layer, point × rank × (real, imaginary)");
    write(group, "unstable", {points.size()}, unstable, "eigenvalues outside of the unit circle");
    write(group, "starts", {points.size()}, starts, "starts that led to the point");
    group.set_number("starts", double(found.fixed_points->starts), hdf5::Type::i8);
    group.set_number("slow", double(found.fixed_points->slow), hdf5::Type::i8);
    group.set_number("moving", double(found.fixed_points->moving), hdf5::Type::i8);
  }
  if (const auto& classes = found.distinguishability) {
    hdf5::Group group = root.make_group("distinguishability");
    for (const auto& [name, of] : {std::pair{"hidden", &classes->hidden}, std::pair{"read", &classes->read}}) {
      hdf5::Group part = group.make_group(name);
      write(part, "spread", {of->spread.size()}, of->spread, "spread within a class by step, over the separation");
      write(part, "drift", {of->drift.size()}, of->drift,
            "drift of the classes' means since the reference step, by step, over the separation");
      part.set_number("separation", of->separation);
    }
    group.set_number("reference_step", double(classes->reference), hdf5::Type::i8);
    group.set_number("sequences", double(classes->sequences), hdf5::Type::i8);
  }
  file.close();
  target.replace();
  return path;
}

}  // namespace stiefel
