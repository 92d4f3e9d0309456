// The whole network: gradients against central differences, chunks and slices against the whole, the same bits for any
// threads.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include <stiefel/parallel.hpp>

#include "engine/network.hpp"
#include "network_probe.hpp"
#include "whole_network.hpp"

using namespace stiefel;
using namespace stiefel::whole_network;

namespace {

const char* const real_activations[] = {"identity",
                                        "tanh",
                                        "relu",
                                        "leaky_relu",
                                        "{kind: prelu, slope: 0.7}",
                                        "{kind: prelu, slope: 0.3, shared: false}",
                                        "{kind: oplu, pairing: halves}",
                                        "{kind: oplu, pairing: adjacent}",
                                        "{kind: modrelu, bias_init: uniform, bias_scale: 0.1}",
                                        "{kind: modrelu, form: eu, bias_init: uniform}",
                                        "{kind: modrelu, form: goru, bias_init: uniform}",
                                        "{kind: modrelu, form: squared, bias_init: uniform, bias_scale: 0.1}"};
const char* const real_maps[] = {
    "{plugin: dense, init: orthogonal, scale: 0.9}",
    "{plugin: householder, reflections: 3, normalise_columns: false, std: 1, route: structured}",
    "{plugin: householder, reflections: 3, normalise_columns: false, std: 1, route: dense}",
    "{plugin: householder, reflections: 6, normalise_columns: false, std: 1}", "{plugin: scaled_cayley, rho: 3}"};

/// h_t = 2 h_{t−1} + V x_t + b with a learned h_0.
Network<double> doubling(const Probe<double>& task) {
  Setting s;
  s.cell = "{plugin: elman, hidden: 6, activation: identity}";
  s.recurrent = "{plugin: dense, init: identity}";
  s.state = "{kind: learned, init: uniform}";
  s.kind = ReadoutKind::last;
  const LoadedExperiment loaded = experiment(s);
  Network<double> network(loaded.experiment, registry(), task);
  network.initialise(5);
  as_vector(network.theta()[network.layout().find("recurrent.W")]) *= 2;
  network.refresh();
  return network;
}

}  // namespace

TEST_CASE("gradients: every activation with every map") {
  for (const char* activation : real_activations)
    for (const char* map : real_maps) {
      Setting s;
      s.cell = fmt::format("{{plugin: elman, hidden: 6, activation: {}}}", activation);
      s.recurrent = map;
      check_gradient(s);
    }
}

TEST_CASE("gradients: every input with every readout and every map") {
  for (Input input : {Input::dense, Input::symbols, Input::embedded, Input::none})
    for (ReadoutKind kind : {ReadoutKind::every, ReadoutKind::last})
      for (bool labels : {true, false})
        for (const char* map : real_maps) {
          Setting s;
          s.input = input, s.kind = kind, s.labels = labels, s.recurrent = map;
          check_gradient(s);
        }
}

TEST_CASE("gradients: a complex map, its activations and a real readout") {
  for (const char* activation :
       {"identity", "{kind: modrelu, bias_init: uniform}", "{kind: modrelu, form: arj, bias_init: uniform}",
        "{kind: modrelu, form: wis, bias_init: uniform}", "{kind: modrelu, form: eu, bias_init: uniform}"})
    for (const char* rows : {"{rows: all}", "{rows: real}"})
      for (const char* map :
           {"complex_rotation", "{plugin: kronecker, route: structured}", "{plugin: kronecker, route: dense}"}) {
        Setting s;
        s.cell = fmt::format("{{plugin: elman, hidden: 4, activation: {}}}", activation);
        s.recurrent = map, s.readout = rows;
        check_gradient(s);
      }
}

TEST_CASE("gradients: two maps in one cell, the same or different ones") {
  Setting s;
  s.cell = "{plugin: two_map_gated, hidden: 5}";
  check_gradient(s);
  s.recurrent = "{plugin: householder, reflections: 2, normalise_columns: false, std: 1, route: structured}";
  check_gradient(s);
  s.maps = "{candidate: {plugin: scaled_cayley, rho: 2}}";
  check_gradient(s);
}

TEST_CASE("gradients: lstm and gru, every variant, with fused, structured and mixed maps") {
  for (const char* cell : {"plugin: lstm", "plugin: lstm, forget_bias_fixed: true",
                           "plugin: lstm, peepholes: diagonal, peephole_init: normal",
                           "plugin: lstm, peepholes: output_full", "plugin: gru", "plugin: gru, update: new",
                           "plugin: gru, reset: after", "plugin: gru, reset: after, update: new"}) {
    Setting s;
    s.cell = fmt::format("{{{}, hidden: 5}}", cell);
    check_gradient(s);
    s.recurrent = "{plugin: householder, reflections: 2, normalise_columns: false, std: 1, route: structured}";
    s.input = Input::symbols, s.kind = ReadoutKind::last, s.labels = false;
    check_gradient(s);
    s.maps = "{candidate: {plugin: scaled_cayley, rho: 2}}";
    check_gradient(s);
  }
}

TEST_CASE("gated cells refuse complex maps, and a forget bias where there is no bias") {
  const Probe<double> task(Input::dense, ReadoutKind::every, true);
  for (const char* cell : {"lstm", "gru"}) {
    Setting s;
    s.cell = fmt::format("{{plugin: {}, hidden: 4}}", cell);
    s.recurrent = "complex_rotation";
    const LoadedExperiment loaded = experiment(s);
    CHECK_THROWS_WITH_AS(Network<double>(loaded.experiment, registry(), task),
                         doctest::Contains("cannot use a complex map; choose real"), Error);
  }
  const auto without_bias = [&](const char* options) {
    Setting s;
    s.cell = fmt::format("{{plugin: lstm, hidden: 4, {}}}", options);
    s.bias = false;
    const LoadedExperiment loaded = experiment(s);
    Network<double>(loaded.experiment, registry(), task).initialise(1);
  };
  CHECK_THROWS_WITH_AS(without_bias("forget_bias: 1"), doctest::Contains("`input.bias` is false"), Error);
  CHECK_NOTHROW(without_bias("forget_bias: 0"));
  CHECK_NOTHROW(without_bias("forget_bias_fixed: true"));
}

TEST_CASE("the forget bias is added to the initial bias of the forget gate alone") {
  const Probe<double> task(Input::dense, ReadoutKind::every, true);
  const auto initial_bias = [&](const char* options) {
    Setting s;
    s.cell = fmt::format("{{plugin: lstm, hidden: 3, {}}}", options);
    const LoadedExperiment loaded = experiment(s);
    Network<double> network(loaded.experiment, registry(), task);
    network.initialise(1);
    REQUIRE(network.layout().block(1).name == "input.bias");
    return Vector<double>(as_vector(network.theta()[1]));
  };
  const Vector<double> plain = initial_bias("forget_bias: 0");
  Vector<double> expected = plain;
  expected.segment(3, 3).array() += 5;
  CHECK(initial_bias("forget_bias: 5") == expected);
  CHECK(initial_bias("forget_bias: 5, forget_bias_fixed: true") == plain);
}

TEST_CASE("hidden_uniform is U(±√(3/(2n))) with n hidden units, whatever else a state has") {
  const Probe<double> task(Input::dense, ReadoutKind::every, true);
  Setting s;
  s.state = "{kind: learned, init: hidden_uniform}";
  const auto cells = {std::pair<const char*, const char*>{"{plugin: elman, hidden: 150, activation: {kind: modrelu}}",
                                                          "{plugin: kronecker, factors: [2, 3, 5, 5]}"},
                      {"{plugin: lstm, hidden: 150}", "{plugin: dense}"},
                      {"{plugin: elman, hidden: 300}", "{plugin: dense}"}};
  int states = 0;
  for (const auto& [cell, map] : cells) {
    s.cell = cell;
    s.recurrent = map;
    const LoadedExperiment loaded = experiment(s);
    Network<double> network(loaded.experiment, registry(), task);
    network.initialise(1);
    for (Index i = 0; i < network.layout().count(); ++i) {
      if (network.layout().block(i).name != "initial_state") continue;
      const auto state = as_vector(network.theta()[i]).array();
      const double bound = std::sqrt(3. / (2 * double(loaded.experiment.model.layers[0].hidden)));
      REQUIRE(state.size() == 300);
      ++states;
      CHECK(state.abs().maxCoeff() < bound);
      CHECK(state.abs().maxCoeff() > 0.97 * bound);
    }
  }
  CHECK(states == 3);
}

TEST_CASE("the chunk length changes no gradient by more than rounding") {
  std::vector<std::vector<double>> gradients;
  for (int chunk : {1, 2, 3, 9}) {
    Setting s;
    s.chunk = chunk;
    const LoadedExperiment loaded = experiment(s);
    const Probe<double> task(Input::dense, ReadoutKind::every, true);
    Network<double> network(loaded.experiment, registry(), task);
    network.initialise(5);
    Workers workers(2);
    Batch<double> batch;
    task.fill(Split::train, 0, batch);
    network.refresh();
    network.train(batch, workers, {});
    gradients.emplace_back(network.gradient().data(), network.gradient().data() + network.layout().size());
  }
  for (std::size_t k = 1; k < gradients.size(); ++k)
    for (std::size_t i = 0; i < gradients[k].size(); ++i)
      CHECK(gradients[k][i] == doctest::Approx(gradients[0][i]).epsilon(1e-11));
}

TEST_CASE("computing hidden states again changes no bit, with unequal lengths and with gradient norms") {
  for (const char* cell : {"{plugin: elman, hidden: 6, activation: modrelu}", "{plugin: lstm, hidden: 5}"})
    for (ReadoutKind kind : {ReadoutKind::every, ReadoutKind::last}) {
      std::vector<std::vector<double>> gradients;
      for (const std::string recompute : {"never", "always"}) {
        Setting s;
        s.cell = cell, s.kind = kind, s.chunk = 2, s.train = ", recompute: " + recompute;
        const LoadedExperiment loaded = experiment(s);
        const Probe<double> task(Input::dense, kind, true);
        Network<double> network(loaded.experiment, registry(), task);
        network.initialise(5);
        Workers workers(2);
        Batch<double> batch;
        task.fill(Split::train, 1, batch);
        network.refresh();
        for (int repeat = 0; repeat < 2; ++repeat) {
          const PassResult pass = network.train(batch, workers, {.norms = true});
          gradients.emplace_back(network.gradient().data(), network.gradient().data() + network.layout().size());
          gradients.back().push_back(pass.loss);
          for (const auto* norms : {&pass.hidden_norm, &pass.gradient_norm, &pass.last_gradient_norm})
            gradients.back().insert(gradients.back().end(), norms->begin(), norms->end());
        }
      }
      for (const auto& gradient : gradients) CHECK(gradient == gradients[0]);
    }
}

TEST_CASE("the number of threads changes no bit") {
  for (const char* cell :
       {"{plugin: elman, hidden: 6}", "{plugin: lstm, hidden: 6, peepholes: diagonal}", "{plugin: lstm, hidden: 6}",
        "{plugin: gru, hidden: 6}", "{plugin: gru, hidden: 6, reset: after}"}) {
    for (const char* recurrent : {real_maps[0], real_maps[1]}) {
      std::vector<std::vector<double>> gradients;
      for (int threads : {1, 2, 8}) {
        Setting s;
        s.cell = cell;
        s.recurrent = recurrent;
        const LoadedExperiment loaded = experiment(s);
        const Probe<double> task(Input::dense, ReadoutKind::every, true);
        Network<double> network(loaded.experiment, registry(), task);
        network.initialise(5);
        Workers workers(threads);
        Batch<double> batch;
        task.fill(Split::train, 1, batch);
        network.refresh();
        const PassResult pass = network.train(batch, workers, {.norms = true});
        gradients.emplace_back(network.gradient().data(), network.gradient().data() + network.layout().size());
        gradients.back().push_back(pass.loss);
        gradients.back().insert(gradients.back().end(), pass.gradient_norm.begin(), pass.gradient_norm.end());
        gradients.back().insert(gradients.back().end(), pass.last_gradient_norm.begin(), pass.last_gradient_norm.end());
        gradients.back().insert(gradients.back().end(), pass.hidden_norm.begin(), pass.hidden_norm.end());
      }
      CHECK(gradients[0] == gradients[1]);
      CHECK(gradients[0] == gradients[2]);
    }
  }
}

TEST_CASE("threads that share the columns of one map in a batch of one slice change no bit") {
  for (const char* reflections : {"100", "149", "150"}) {
    std::vector<std::vector<double>> gradients;
    for (int threads : {1, 2, 8}) {
      Setting s;
      s.cell = "{plugin: elman, hidden: 150}";
      s.recurrent = fmt::format("{{plugin: householder, reflections: {}, route: structured}}", reflections);
      const LoadedExperiment loaded = experiment(s);
      const Probe<double> task(Input::dense, ReadoutKind::every, true, 9, 11);
      Batch<double> batch;
      task.fill(Split::train, 1, batch);
      Network<double> network(loaded.experiment, registry(), task);
      network.initialise(5);
      Workers workers(threads);
      Workers::Lent idle(&workers);
      network.refresh();
      const PassResult pass = network.train(batch, workers, {});
      gradients.emplace_back(network.gradient().data(), network.gradient().data() + network.layout().size());
      gradients.back().push_back(pass.loss);
    }
    CHECK(gradients[0].back() > 0);
    CHECK(gradients[0] == gradients[1]);
    CHECK(gradients[0] == gradients[2]);
  }
}

TEST_CASE("training and evaluation give the same loss") {
  for (ReadoutKind kind : {ReadoutKind::every, ReadoutKind::last}) {
    Setting s;
    s.kind = kind;
    const LoadedExperiment loaded = experiment(s);
    const Probe<double> task(Input::dense, kind, true);
    Network<double> network(loaded.experiment, registry(), task);
    network.initialise(5);
    Workers workers(1);
    Batch<double> batch;
    task.fill(Split::train, 0, batch);
    network.refresh();
    const double trained = network.train(batch, workers, {}).loss;
    CHECK(network.evaluate(batch, workers).loss == doctest::Approx(trained).epsilon(1e-13));
  }
}

TEST_CASE("a carried state makes two short batches one long one") {
  Setting s;
  s.state = "{kind: carried}";
  const LoadedExperiment loaded = experiment(s);
  // Equal lengths: the second half of the long batch starts where the first ended.
  const Probe<double> probe(Input::dense, ReadoutKind::every, true, 8), half(Input::dense, ReadoutKind::every, true, 4);
  Batch<double> whole, parts[2];
  probe.fill(Split::train, 0, whole);
  for (int p = 0; p < 2; ++p) parts[p].resize(half.shape(), 13, 4);
  for (Index b = 0; b < 13; ++b) {
    whole.length(b) = 8;
    for (Index t = 0; t < 8; ++t) {
      whole.weight(t, b) = 1;
      parts[t / 4].label(t % 4, b) = whole.label(t, b);
      std::ranges::copy(whole.input(t, b), parts[t / 4].input(t % 4, b).begin());
    }
  }
  Workers workers(2);
  Network<double> one(loaded.experiment, registry(), probe), two(loaded.experiment, registry(), half);
  one.initialise(5), two.initialise(5);
  one.refresh(), two.refresh();
  const double loss = one.train(whole, workers, {}).loss;
  const double first = two.train(parts[0], workers, {}).loss, second = two.train(parts[1], workers, {}).loss;
  CHECK(0.5 * (first + second) == doctest::Approx(loss).epsilon(1e-12));
  const Matrix<double> state = two.take_state();
  CHECK((state - one.take_state()).norm() <= 1e-12 * state.norm());

  two.give_state(state.leftCols(12));
  CHECK_THROWS_WITH_AS(two.train(parts[0], workers, {}),
                       doctest::Contains("the state of 12 sequences is carried into a batch of 13"), Error);
}

TEST_CASE("gradient norms per step are those of the hidden states") {
  // h_t = 2 h_{t−1} + V x_t + b with a learned h_0 before step 0: ∂L/∂h_t = 2^{−(t+1)} ∂L/∂h_0 for one sequence, and
  // the squares of the sequences add up.
  const Probe<double> task(Input::dense, ReadoutKind::last, false, 7);
  Network<double> network = doubling(task);
  Workers workers(1);
  Batch<double> all;
  task.fill(Split::train, 0, all);
  constexpr Index steps = 5, sequences = 3;
  std::vector<double> squares(steps, 0);
  Batch<double> together;
  together.resize(task.shape(), sequences, steps);
  for (Index b = 0; b < sequences; ++b) {
    Batch<double> one;
    one.resize(task.shape(), 1, steps);
    for (const auto& [batch, column] : {std::pair{&one, Index(0)}, std::pair{&together, b}}) {
      batch->length(column) = steps - b;
      for (Index t = 0; t < steps - b; ++t)
        std::ranges::copy(all.input(t % all.length(b), b), batch->input(t, column).begin());
      batch->weight(steps - b - 1, column) = 1;
      for (double& y : batch->target(steps - b - 1, column)) y = 3 + double(b);
    }
    const std::vector<double> norm = network.train(one, workers, {.norms = true}).gradient_norm;
    const double entering = as_vector(network.gradient()[network.layout().find("initial_state")]).norm();
    REQUIRE(entering > 0);
    for (Index t = 0; t < steps - b; ++t) {
      CHECK(norm[std::size_t(t)] == doctest::Approx(entering * std::pow(0.5, double(t + 1))).epsilon(1e-12));
      squares[std::size_t(t)] += std::pow(norm[std::size_t(t)] / sequences, 2);
    }
  }
  const PassResult pass = network.train(together, workers, {.norms = true});
  for (std::size_t t = 0; t < squares.size(); ++t)
    CHECK(pass.gradient_norm[t] == doctest::Approx(std::sqrt(squares[t])).epsilon(1e-12));
  CHECK(pass.gradient_norm == pass.last_gradient_norm);
}

TEST_CASE("slices: sorted, dealt, a formula of the batch") {
  CHECK(slice_count(1) == 1);
  CHECK(slice_count(11) == 1);
  CHECK(slice_count(12) == 2);
  CHECK(slice_count(50) == 8);
  CHECK(slice_count(1000) == 8);
  const auto slices = deal({3, 9, 1, 9, 4, 4, 2, 8, 1, 1, 1, 1, 1});
  REQUIRE(slices.size() == 2);
  CHECK(slices[0].sequences == std::vector<Index>{1, 7, 5, 6, 8, 10, 12});
  CHECK(slices[0].lengths == std::vector<Index>{9, 8, 4, 2, 1, 1, 1});
  CHECK(slices[0].active == std::vector<Index>{7, 4, 3, 3, 2, 2, 2, 2, 1});
}

TEST_CASE("workers: every number once, the lowest failure is reported") {
  Workers workers(4);
  std::vector<int> seen(100, 0);
  workers.run(100, [&](int i) { ++seen[std::size_t(i)]; });
  CHECK(seen == std::vector<int>(100, 1));
  const auto fail = [](int i) {
    if (i >= 3) throw std::runtime_error(std::to_string(i));
  };
  CHECK_THROWS_WITH_AS(workers.run(9, fail), "3", std::runtime_error);
  workers.run(100, [&](int i) { --seen[std::size_t(i)]; });
  CHECK(seen == std::vector<int>(100, 0));
}

TEST_CASE("panels of columns go to lent threads, each once; a job's own are done by itself") {
  Workers workers(4);
  const Workers::Lent lent(&workers);
  std::vector<int> seen(1000, 0);
  std::vector<std::thread::id> outer(1000), inner(1000);
  for_each_panel(1000, [&](Index first, Index width) {
    std::fill_n(outer.begin() + first, width, std::this_thread::get_id());
    in_parallel(width, [&](Index i) {
      ++seen[std::size_t(first + i)];
      inner[std::size_t(first + i)] = std::this_thread::get_id();
    });
  });
  CHECK(seen == std::vector<int>(1000, 1));
  CHECK(inner == outer);
}

TEST_CASE("norms of the hidden states are those of h_t = 2 h_{t−1} + V x_t + b") {
  const Probe<double> task(Input::dense, ReadoutKind::last, false, 7);
  Network<double> network = doubling(task);
  Workers workers(1);
  Batch<double> batch;
  task.fill(Split::train, 0, batch);
  const PassResult pass = network.train(batch, workers, {.norms = true});
  const auto block = [&](const char* name) { return as_vector(network.theta()[network.layout().find(name)]); };
  const auto V = as_matrix(network.theta()[network.layout().find("input.weight")], 6, 3);
  std::vector<double> squares(7, 0);
  for (Index b = 0; b < batch.sequences(); ++b) {
    Vector<double> h = block("initial_state");
    for (Index t = 0; t < batch.length(b); ++t) {
      h = (2 * h + V * as_vector(batch.input(t, b)) + block("input.bias")).eval();
      squares[std::size_t(t)] += h.squaredNorm();
    }
  }
  for (std::size_t t = 0; t < 7; ++t)
    CHECK(pass.hidden_norm[t] == doctest::Approx(std::sqrt(squares[t])).epsilon(1e-12));
}
