// Networks of several layers: gradients against difference quotients, and what must not change a bit.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "network_probe.hpp"
#include "whole_network.hpp"

using namespace stiefel;
using namespace stiefel::whole_network;

namespace {

struct CellWithMap {
  const char *cell, *recurrent;
};
const CellWithMap cells[] = {
    {"{plugin: elman, hidden: 4, activation: tanh}", "{plugin: scaled_cayley, rho: 1}"},
    {"{plugin: elman, hidden: 3, activation: {kind: modrelu, bias_init: uniform}}", "{plugin: full_unitary}"},
    {"{plugin: lstm, hidden: 3}", "dense"},
    {"{plugin: gru, hidden: 3}", "dense"},
    {"{plugin: goru, hidden: 4}", "{plugin: householder, reflections: 2}"},
    {"{plugin: lem, hidden: 3}", "dense"},
    {"{plugin: cornn, hidden: 3}", "dense"},
    {"{plugin: lipschitz, hidden: 4}", "symmetric_skew"},
    {"{plugin: mingru, hidden: 4}", ""},
    {"{plugin: lru, hidden: 3}", ""},
};

Setting setting_of(const CellWithMap& cell, const std::string& layers) {
  Setting s;
  s.cell = cell.cell, s.recurrent = cell.recurrent, s.layers = layers;
  return s;
}

const std::string blocks = "\n  layers: 3\n  norm: layer\n  gate: glu\n  residual: true";

/// Gradient, loss and norms of a training pass.
std::vector<double> trained(const Setting& s, int threads, ReadoutKind kind = ReadoutKind::every) {
  const LoadedExperiment loaded = experiment(s);
  const bool whole = loaded.experiment.model.layers[0].bidirectional;
  const Probe<double> task(Input::dense, kind, true, 9, 13, !whole);
  Network<double> network(loaded.experiment, registry(), task);
  network.initialise(5);
  Workers workers(threads);
  Batch<double> batch;
  task.fill(Split::train, 1, batch);
  network.refresh();
  PassRequest request = s.request;
  request.norms = true;
  const PassResult pass = network.train(batch, workers, request);
  std::vector<double> numbers(network.gradient().data(), network.gradient().data() + network.layout().size());
  numbers.push_back(pass.loss);
  for (const auto* norms : {&pass.hidden_norm, &pass.gradient_norm, &pass.last_gradient_norm})
    numbers.insert(numbers.end(), norms->begin(), norms->end());
  return numbers;
}

}  // namespace

TEST_CASE("gradients of three layers of every cell: norm, gate, residual") {
  for (const CellWithMap& cell : cells) check_gradient(setting_of(cell, blocks));
}

TEST_CASE("gradients of two plain layers, at all steps and at the last one") {
  for (const ReadoutKind kind : {ReadoutKind::every, ReadoutKind::last})
    for (const char* train : {"", ", recompute: always"}) {
      Setting s = setting_of(cells[2], "\n  layers: 2");
      s.kind = kind, s.train = train, s.chunk = 2;
      check_gradient(s);
    }
}

TEST_CASE("gradients with dropout, whose random numbers stay") {
  for (const char* more : {"", "\n  norm: rms\n  residual: true", "\n  gate: glu"}) {
    Setting s = setting_of(cells[0], std::string("\n  layers: 3\n  dropout: 0.4") + more);
    s.request = {.seed = 3, .dropout = "1/0"};
    check_gradient(s);
  }
}

TEST_CASE("gradients of bidirectional layers") {
  for (const ReadoutKind kind : {ReadoutKind::every, ReadoutKind::last})
    for (const std::string more : {"", "\n  norm: layer\n  gate: glu\n  residual: true"})
      for (const int cell : {1, 2}) {
        Setting s = setting_of(cells[cell], "\n  layers: 2\n  bidirectional: true" + more);
        s.kind = kind;
        check_gradient(s);
      }
}

TEST_CASE("gradients of unlike layers, of symbols, and of one bidirectional layer") {
  Setting s;
  s.input = Input::symbols;
  s.layers = "\n  layers: 2\n  dropout: 0.1";
  check_gradient(s);
  s.layers = "\n  bidirectional: true";
  check_gradient(s);
  s.input = Input::embedded;
  s.layers = "\n  layers: 2";
  check_gradient(s);
  s.model =
      "{layers: [{cell: {plugin: lru, hidden: 3}}, {cell: {plugin: lstm, hidden: 4}, recurrent: dense, norm: rms, "
      "initial_state: {kind: learned, init: uniform}}, {cell: {plugin: elman, hidden: 2, activation: modrelu}, "
      "recurrent: full_unitary, residual: true, gate: glu}]}";
  check_gradient(s);
}

TEST_CASE("threads, and computing states again, change no bit of a deep network") {
  for (const std::string more :
       {"", "\n  dropout: 0.3", "\n  norm: layer\n  gate: glu\n  residual: true\n  dropout: 0.3"}) {
    Setting s = setting_of(cells[2], "\n  layers: 3" + more);
    s.request = {.seed = 3, .dropout = "1/0"};
    s.chunk = 2;
    const std::vector<double> once = trained(s, 1);
    CHECK(trained(s, 8) == once);
    s.train = ", recompute: always";
    CHECK(trained(s, 2) == once);
    CHECK(trained(s, 1, ReadoutKind::last) != once);
  }
  Setting both = setting_of(cells[2], "\n  layers: 2\n  bidirectional: true");
  CHECK(trained(both, 8) == trained(both, 1));
}

TEST_CASE("the chunk length changes a deep network by no more than rounding") {
  Setting s = setting_of(cells[2], blocks + "\n  dropout: 0.3");
  s.request = {.seed = 3, .dropout = "1/0"};
  const std::vector<double> first = trained(s, 1);
  for (const int chunk : {1, 3, 9}) {
    s.chunk = chunk;
    const std::vector<double> other = trained(s, 1);
    REQUIRE(other.size() == first.size());
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(other[i] == doctest::Approx(first[i]).epsilon(1e-10));
  }
}

TEST_CASE("dropout: its share and scale, and other numbers in another step, layer and sequence") {
  Setting s = setting_of(cells[0], "\n  layers: 2\n  dropout: 0.25");
  s.request = {.seed = 3, .dropout = "1/0"};
  const std::vector<double> first = trained(s, 1);
  CHECK(trained(s, 1) == first);
  s.request.dropout = "2/0";
  CHECK(trained(s, 1) != first);
  s.request = {};
  const std::vector<double> none = trained(s, 1);
  s.layers = "\n  layers: 2";
  CHECK(trained(s, 1) == none);

  // Each output is the sum of the n units that are kept, over ¾: with mean n and variance n·(¼ / ¾), and for one unit
  // with the mean square 1/¾.
  const Probe<double> task(Input::dense, ReadoutKind::every, false);
  Batch<double> batch;
  task.fill(Split::train, 1, batch);
  Index count = 0;
  for (Index b = 0; b < batch.sequences(); ++b) {
    count += batch.length(b);
    for (Index t = 0; t < batch.length(b); ++t) {
      batch.weight(t, b) = 1;
      for (double& y : batch.target(t, b)) y = 0;
    }
  }
  Workers workers(1);
  const auto mean_square = [&](Index units, int draws) {
    s.model = fmt::format(
        "{{cell: {{plugin: elman, hidden: {}, activation: identity}}, recurrent: {{plugin: dense, init: zero}}, input: "
        "{{init: zero, bias_init: constant}}, readout: {{init: constant, bias: false}}, dropout: 0.25}}",
        units);
    const LoadedExperiment loaded = experiment(s);
    Network<double> network(loaded.experiment, registry(), task);
    network.initialise(5);
    network.refresh();
    const double without = network.evaluate(batch, workers).loss;
    double sum = 0;
    for (int draw = 1; draw <= draws; ++draw)
      sum += network.train(batch, workers, {.seed = 3, .dropout = fmt::format("{}/0", draw)}).loss / without;
    return sum / draws;
  };
  const double many = mean_square(400, 1), one = mean_square(1, 200);
  CHECK(std::abs(std::sqrt(many) - 1) < 5 * std::sqrt(1. / 3 / 400 / double(count)));
  CHECK(many != 1);
  CHECK(std::abs(one * 0.75 - 1) < 5 * std::sqrt(1. / 3 / 200 / double(count)));
}

TEST_CASE("names of blocks say the layer and the direction") {
  const Probe<double> task(Input::dense, ReadoutKind::every, true, 9, 13, false);
  const auto names = [&](const std::string& layers) {
    const LoadedExperiment loaded = experiment(setting_of({"{plugin: elman, hidden: 4}", "scaled_cayley"}, layers));
    return Network<double>(loaded.experiment, registry(), task).layout().names();
  };
  CHECK(names("") == "input.weight, input.bias, readout.weight, readout.bias, initial_state, recurrent.A");
  CHECK(names("\n  layers: 2\n  norm: rms") ==
        "layers.0.input.weight, layers.0.input.bias, layers.1.input.weight, layers.1.input.bias, layers.1.norm.weight, "
        "readout.weight, readout.bias, layers.0.initial_state, layers.1.initial_state, layers.0.recurrent.A, "
        "layers.1.recurrent.A");
  CHECK(names("\n  bidirectional: true\n  gate: glu") ==
        "input.weight, input.bias, reverse.input.weight, reverse.input.bias, gate.weight, gate.bias, readout.weight, "
        "readout.bias, initial_state, reverse.initial_state, recurrent.A, reverse.recurrent.A");
}

TEST_CASE("what was resolved is the same experiment, and one layer has the ID that it had") {
  const auto load = [](const std::string& text) { return load_experiment_text(text, "probe", {}, registry()); };
  const auto with = [&](const std::string& model) {
    return load("name: probe\ntask: {plugin: adding, length: 9}\nmodel: " + model +
                "\noptimizer: {plugin: sgd, rate: 0.1}\ntrain: {batch: 13, steps: 1}\n");
  };
  const std::string layer = "cell: {plugin: elman, hidden: 4}, recurrent: dense";
  for (const std::string& model :
       {"{" + layer + ", layers: 3, norm: rms}", "{layers: [{" + layer + "}, {" + layer + ", gate: glu}]}"}) {
    const LoadedExperiment loaded = with(model);
    CHECK(load(loaded.resolved_yaml).id == loaded.id);
  }
  const std::string one = with("{" + layer + "}").id;
  CHECK(with("{" + layer + ", layers: 1, norm: none, gate: none, dropout: 0, residual: false, bidirectional: false}")
            .id == one);
  std::set<std::string> ids = {one};
  for (const char* more : {"layers: 2", "gate: glu", "dropout: 0.1", "bidirectional: true"})
    ids.insert(with("{" + layer + ", " + more + "}").id);
  CHECK(ids.size() == 5);
}

TEST_CASE("what deep networks refuse") {
  const auto refusal = [](const std::string& model, bool streams) -> std::string {
    try {
      const LoadedExperiment loaded =
          load_experiment_text("name: probe\ntask: {plugin: adding, length: 9}\nmodel: " + model +
                                   "\noptimizer: {plugin: sgd, rate: 0.1}\ntrain: {batch: 13, steps: 1}\n",
                               "probe", {}, registry());
      const Probe<float> task(Input::dense, ReadoutKind::every, true, 9, 13, streams);
      Network<float> network(loaded.experiment, registry(), task);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  const std::string layer = "{cell: {plugin: lstm, hidden: 4}, recurrent: dense",
                    wide = "{cell: {plugin: lstm, hidden: 5}, recurrent: dense";
  const auto contains = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != text.npos);
  };
  CHECK(refusal("{layers: [" + layer + "}, " + wide + "}]}", true) == "nothing");
  contains(refusal("{layers: [" + layer + "}, " + wide + ", residual: true}]}", true),
           "model.layers.1.residual: the layer has 5 outputs, but the layer below it has 4");
  contains(refusal(layer + ", layers: 2, bidirectional: true}", true), "model.bidirectional: needs whole sequences");
  contains(
      refusal("{cell: {plugin: elman, hidden: 4, activation: modrelu}, recurrent: full_unitary, gate: glu, readout: "
              "{rows: real}}",
              false),
      "model.readout.rows: real reads a cell, and the last layer ends with a gate");
  contains(refusal("{cell: {plugin: elman, hidden: 4, activation: modrelu}, recurrent: full_unitary, bidirectional: "
                   "true, readout: {rows: real}}",
                   false),
           "model.readout.rows: real reads one cell, and the last layer has two");
  contains(refusal(layer + ", norm: layer}", false), "model.norm: acts between two layers");
  contains(refusal(layer + ", residual: true}", false), "model.residual: acts between two layers");
  contains(refusal("{layers: [" + layer + ", norm: rms}, " + layer + "}]}", true),
           "model.layers.0.norm: acts between two layers");
  contains(refusal("{layers: []}", true), "model.layers is an empty list");
  contains(refusal("{layers: [" + layer + "}], cell: {plugin: lstm, hidden: 4}}", true),
           "model.cell is not a key of model");
  contains(refusal("{layers: [" + layer + ", initial_state: carried}, " + layer + "}]}", true),
           "either all layers carry their states over, or none");
  contains(refusal(layer + ", layers: 0}", true), "model.layers must be from 1 to 1000, got 0");
}

TEST_CASE("norms of a layer that reads both ways are those of the steps of the sequence") {
  Setting s;
  s.recurrent = "{plugin: dense, init: zero}", s.state = "{kind: zero}", s.bias = false;
  s.kind = ReadoutKind::last, s.layers = "\n  bidirectional: true";
  const LoadedExperiment loaded = experiment(s);
  const Probe<double> task(Input::dense, ReadoutKind::last, true, 5, 1, false);
  Network<double> network(loaded.experiment, registry(), task);
  network.initialise(5);
  network.refresh();
  Batch<double> batch;
  batch.resize(task.shape(), 1, 5);
  batch.length(0) = 4;
  for (double& x : batch.input(1, 0)) x = 1;  // W = 0: h_t depends on x_t alone
  Workers workers(1);
  const PassResult pass = network.train(batch, workers, {.norms = true});
  REQUIRE(pass.hidden_norm.size() == 4);
  for (std::size_t t = 0; t < 4; ++t) {
    CHECK((pass.hidden_norm[t] > 0) == (t == 1));
    CHECK((pass.gradient_norm[t] > 0) == (t == 3));  // the readout is at the last step
  }
}

TEST_CASE("goru: the reset bias is added to the initial bias of the reset gate alone") {
  const Probe<double> task(Input::dense, ReadoutKind::every, true);
  const auto initial_bias = [&](const char* options) {
    Setting s;
    s.cell = fmt::format("{{plugin: goru, hidden: 3{}}}", options), s.recurrent = "scaled_cayley";
    const LoadedExperiment loaded = experiment(s);
    Network<double> network(loaded.experiment, registry(), task);
    network.initialise(1);
    return Vector<double>(as_vector(network.theta()[network.layout().find("input.bias")]));
  };
  Vector<double> expected = initial_bias(", reset_bias: 0");
  expected.tail(3).array() += 2;  // in the order candidate, update, reset
  CHECK(initial_bias("") == expected);
}

TEST_CASE("lru: the initial decays fill the ring, with γ = √(1 − |λ|²)") {
  const Probe<double> task(Input::dense, ReadoutKind::every, true);
  Setting s;
  s.cell = "{plugin: lru, hidden: 4000, r_min: 0.6, r_max: 0.8, max_phase: 2}", s.recurrent = "";
  const LoadedExperiment loaded = experiment(s);
  Network<double> network(loaded.experiment, registry(), task);
  network.initialise(1);
  const auto block = [&](const char* name) { return as_vector(network.theta()[network.layout().find(name)]).array(); };
  const Eigen::ArrayXd square = (-2 * block("nu").exp()).exp(), phase = block("phi").exp();
  CHECK(
      (square.minCoeff() > 0.36 && square.minCoeff() < 0.361 && square.maxCoeff() < 0.64 && square.maxCoeff() > 0.639));
  CHECK(square.mean() == doctest::Approx(0.5).epsilon(0.01));  // |λ|² is uniform
  CHECK((phase.minCoeff() > 0 && phase.maxCoeff() < 2 && phase.maxCoeff() > 1.99));
  CHECK(((2 * block("log_gamma")).exp() - (1 - square)).abs().maxCoeff() < 1e-12);
}
