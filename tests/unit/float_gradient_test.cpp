// Gradients in float32 against float64 at sizes around those of vectors, tiles, slices and chunks, with sequences of
// unequal lengths.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/load.hpp"
#include "engine/network.hpp"
#include "network_probe.hpp"

using namespace stiefel;

namespace {

Registry& registry() {
  static Registry registry({STIEFEL_PLUGINS});
  return registry;
}

struct Size {
  Index units, batch, steps;
};

Experiment experiment(const std::string& cell, const std::string& recurrent, const Size& size, const char* scalar) {
  const std::string text = fmt::format(
      "name: probe\nscalar: {}\ntask: {{plugin: adding, length: {}}}\nmodel:\n  cell: {{hidden: {}, {}}}\n  recurrent: "
      "{{{}}}\n"
      "  input: {{bias_init: uniform}}\n  initial_state: {{kind: learned, init: uniform, scale: 0.5}}\n"
      "optimizer: {{plugin: sgd, rate: 0.1}}\ntrain: {{batch: {}, steps: 1}}\n",
      scalar, std::max<Index>(size.steps, 3), size.units, cell, recurrent, size.batch);
  return load_experiment_text(text, "probe", {}, registry()).experiment;
}

template <class S> std::vector<double> gradient(Network<S>& network, const Size& size, Workers& workers) {
  const Probe<S> task(Input::dense, ReadoutKind::every, true, size.steps, size.batch);
  Batch<S> batch;
  task.fill(Split::train, 0, batch);
  network.refresh();
  network.train(batch, workers, {});
  return {network.gradient().data(), network.gradient().data() + network.layout().size()};
}

void compare(const std::string& cell, const std::string& recurrent, const Size& size) {
  const Probe<float> task(Input::dense, ReadoutKind::every, true, size.steps, size.batch);
  const Probe<double> exact_task(Input::dense, ReadoutKind::every, true, size.steps, size.batch);
  Network<float> network(experiment(cell, recurrent, size, "float32"), registry(), task);
  Network<double> exact(experiment(cell, recurrent, size, "float64"), registry(), exact_task);
  Workers workers(1);
  network.initialise(1), exact.initialise(1);
  std::copy_n(network.theta().data(), network.layout().size(), exact.theta().data());
  const std::vector<double> got = gradient(network, size, workers), expected = gradient(exact, size, workers);
  for (Index i = 0; i < exact.layout().count(); ++i) {
    double worst = 0, largest = 0;
    for (Index k = exact.layout().offset(i); k < exact.layout().offset(i) + exact.layout().block(i).size; ++k) {
      worst = std::max(worst, std::abs(got[std::size_t(k)] - expected[std::size_t(k)]));
      largest = std::max(largest, std::abs(expected[std::size_t(k)]));
    }
    INFO(exact.layout().block(i).name << " of " << cell << " " << recurrent << ", n = " << size.units
                                      << ", B = " << size.batch << ", T = " << size.steps);
    CHECK(worst <= 1e-4 * largest);
  }
}

void compare_all_sizes(const std::string& cell, const std::string& recurrent, Index smallest = 1) {
  for (const Index units : {1, 2, 3, 7, 15, 16, 17, 31, 33, 127, 170})
    for (const Index batch : {1, 2, 3, 5, 20, 50})
      for (const Index steps : {1, 2, 17})
        if (units >= smallest) compare(cell, recurrent, {units, batch, steps});
}

}  // namespace

TEST_CASE("float32 gradients are those of float64: elman with a dense map") {
  compare_all_sizes("plugin: elman, activation: tanh", "plugin: dense, init: orthogonal");
}
TEST_CASE("float32 gradients are those of float64: elman with reflections, structured and dense") {
  compare_all_sizes("plugin: elman, activation: tanh", "plugin: householder, reflections: 2, route: structured", 2);
  compare_all_sizes("plugin: elman, activation: tanh", "plugin: householder, reflections: 2, route: dense", 2);
}
TEST_CASE("float32 gradients are those of float64: elman with a scaled Cayley transform") {
  compare_all_sizes("plugin: elman, activation: tanh", "plugin: scaled_cayley");
}
TEST_CASE("float32 gradients are those of float64: elman with an exponential") {
  compare_all_sizes("plugin: elman, activation: tanh", "plugin: lie_exponential, base: moving");
}
TEST_CASE("float32 gradients are those of float64: elman with complex reflections, structured and dense") {
  compare_all_sizes("plugin: elman, activation: modrelu",
                    "plugin: unitary_householder, reflections: 2, route: structured", 3);
  compare_all_sizes("plugin: elman, activation: modrelu", "plugin: unitary_householder, reflections: 2, route: dense",
                    3);
}
TEST_CASE("float32 gradients are those of float64: elman with bounded singular values") {
  compare_all_sizes("plugin: elman, activation: tanh",
                    "plugin: spectral_householder, left: 2, right: 1, route: structured", 3);
}
TEST_CASE("float32 gradients are those of float64: elman with Kronecker factors") {
  compare_all_sizes("plugin: elman, activation: modrelu", "plugin: kronecker");
}
TEST_CASE("float32 gradients are those of float64: gated cells") {
  compare_all_sizes("plugin: lstm", "plugin: dense, init: orthogonal");
  compare_all_sizes("plugin: gru", "plugin: dense, init: orthogonal");
}
