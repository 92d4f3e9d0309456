// A whole network on random sequences, and its gradient against difference quotients.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/load.hpp"
#include "conformance/difference.hpp"
#include "engine/network.hpp"
#include "network_probe.hpp"

namespace stiefel::whole_network {

inline Registry& registry() {
  static Registry registry({STIEFEL_PLUGINS, STIEFEL_SOUND_PLUGINS});
  return registry;
}

struct Setting {
  std::string cell = "{plugin: elman, hidden: 6, activation: tanh}";
  std::string recurrent = "{plugin: dense, init: orthogonal, scale: 0.9}";
  std::string maps = "{}";
  std::string state = "{kind: learned, init: uniform, scale: 0.5}";
  std::string readout = "{}";
  bool bias = true;
  Input input = Input::dense;
  ReadoutKind kind = ReadoutKind::every;
  bool labels = true;
  int chunk = 4;
  std::string train;   // further keys of `train:`, after a comma
  std::string layers;  // further keys of `model:`, each after a line break and two blanks
  std::string model;   // instead of all keys of `model:`
  PassRequest request = {};
};

inline LoadedExperiment experiment(const Setting& s) {
  const std::string embedding = s.input == Input::embedded
                                    ? "{embedding: {size: 5, init: normal, scale: 0.7}, bias_init: uniform}"
                                : s.bias ? "{bias_init: uniform}"
                                         : "{bias: false}";
  std::string model = "\n  cell: " + s.cell;
  if (!s.recurrent.empty()) model += "\n  recurrent: " + s.recurrent;
  model += fmt::format("\n  maps: {}\n  input: {}\n  initial_state: {}\n  readout: {}{}", s.maps, embedding, s.state,
                       s.readout, s.layers);
  return load_experiment_text(
      fmt::format("name: probe\nscalar: float64\ntask: {{plugin: adding, length: 9}}\nmodel: {}\noptimizer: {{plugin: "
                  "sgd, rate: 0.1}}\ntrain: {{batch: 13, steps: 1, chunk: {}{}}}\n",
                  s.model.empty() ? model : s.model, s.chunk, s.train),
      "probe", {}, registry());
}

/// With the same dropout as in training.
inline double loss_at(Network<double>& network, const Batch<double>& batch, Workers& workers,
                      const PassRequest& request) {
  network.refresh();
  return request.dropout.empty() ? network.evaluate(batch, workers).loss : network.train(batch, workers, request).loss;
}

/// Every entry against a difference quotient.
inline void check_gradient(const Setting& setting) {
  const LoadedExperiment loaded = experiment(setting);
  const bool whole = loaded.experiment.model.layers[0].bidirectional;
  const Probe<double> task(setting.input, setting.kind, setting.labels, 9, 13, !whole);
  Network<double> network(loaded.experiment, registry(), task);
  Workers workers(2);
  Batch<double> batch;
  task.fill(Split::train, 0, batch);
  network.initialise(1);
  Rng rng(1, "shake");
  for (Index i = 0; i < network.layout().count(); ++i)
    if (network.layout().block(i).manifold == Manifold::flat)
      for (double& x : network.theta()[i]) x += 0.1 * rng.normal();
  network.refresh();
  network.train(batch, workers, setting.request);
  const std::vector<double> gradient(network.gradient().data(), network.gradient().data() + network.layout().size());
  conformance::GradientComparison comparison({.absolute = 1e-11});
  for (Index i = 0; i < network.layout().count(); ++i)
    for (Index k = 0; k < network.layout().block(i).size; ++k) {
      double& x = network.theta()[i][std::size_t(k)];
      const auto along = [&, kept = x](double t) {
        x = kept + t;
        const double loss = loss_at(network, batch, workers, setting.request);
        x = kept;
        return loss;
      };
      comparison.add(network.layout().block(i).name, k, gradient[std::size_t(network.layout().offset(i) + k)], along,
                     1e-3, 1e-15);
    }
  conformance::CheckReport report("network", "gradient", setting.cell);
  comparison.report(report, "gradient");
  INFO(setting.recurrent << " input " << int(setting.input) << " readout " << int(setting.kind) << "\n"
                         << report.text(""));
  CHECK(report.passed());
}

}  // namespace stiefel::whole_network
