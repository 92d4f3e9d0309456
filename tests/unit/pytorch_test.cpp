// Losses and gradients of elman, lstm and gru against PyTorch's own cells with the same weights
// (tests/golden/pytorch.py).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "config/load.hpp"
#include "engine/network.hpp"

using namespace stiefel;

namespace {

using Numbers = std::vector<double>;

/// The recorded batch; the loss is the mean square over steps, sequences and outputs.
class Recorded final : public Task<double> {
 public:
  explicit Recorded(const nlohmann::json& golden)
      : Task<double>(TaskContext{1, golden["sequences"], ""}), golden_(golden) {}
  TaskShape shape() const override {
    return {InputKind::dense,
            golden_["input_size"],
            golden_["output_size"],
            ReadoutKind::every,
            false,
            golden_["steps"],
            false};
  }
  Index batches(Split) const override { return 1; }
  void fill(Split, Index, Batch<double>& batch) const override {
    batch.resize(shape(), golden_["sequences"], golden_["steps"]);
    const Numbers inputs = golden_["inputs"], targets = golden_["targets"];
    auto x = inputs.begin(), y = targets.begin();
    for (Index t = 0; t < batch.steps(); ++t)
      for (Index b = 0; b < batch.sequences(); ++b) {
        for (double& value : batch.input(t, b)) value = *x++;
        for (double& value : batch.target(t, b)) value = *y++;
      }
  }
  double loss(CMat<double> output, const Targets<double>& targets, Mat<double> doutput) const override {
    return mean_square(output, targets, doutput);
  }

 private:
  const nlohmann::json& golden_;
};

}  // namespace

TEST_CASE("losses and gradients are PyTorch's") {
  Registry registry({STIEFEL_PLUGINS});
  std::ifstream file(STIEFEL_GOLDEN "/pytorch.json");
  REQUIRE(file);
  const auto golden = nlohmann::json::parse(file);
  REQUIRE(golden["cells"].size() == 7);
  const Recorded task(golden);
  for (const auto& cell : golden["cells"]) {
    const std::string model = cell["model"];
    CAPTURE(model);
    const LoadedExperiment loaded = load_experiment_text(
        fmt::format(
            "name: probe\nscalar: float64\ntask: {{plugin: adding}}\nmodel:\n  {}\n  recurrent: {{plugin: dense}}\n"
            "optimizer: {{plugin: sgd}}\ntrain: {{batch: {}, steps: 1}}\n",
            model, golden["sequences"].get<Index>()),
        "probe", {}, registry);
    Network<double> network(loaded.experiment, registry, task);
    network.initialise(1);
    REQUIRE(network.layout().count() == Index(cell["parameters"].size()));
    for (Index i = 0; i < network.layout().count(); ++i) {
      const Numbers values = cell["parameters"].at(network.layout().block(i).name);
      REQUIRE(Index(values.size()) == network.layout().block(i).size);
      std::copy(values.begin(), values.end(), network.theta()[i].begin());
    }
    Batch<double> batch;
    task.fill(Split::train, 0, batch);
    Workers workers(1);
    network.refresh();
    CHECK(network.train(batch, workers, {}).loss == doctest::Approx(cell["loss"].get<double>()).epsilon(1e-13));
    for (Index i = 0; i < network.layout().count(); ++i) {
      CAPTURE(network.layout().block(i).name);
      const Numbers expected = cell["gradient"].at(network.layout().block(i).name);
      double worst = 0;
      for (std::size_t k = 0; k < expected.size(); ++k)
        worst = std::max(worst, std::abs(network.gradient()[i][k] - expected[k]));
      CHECK(worst < 1e-14);
    }
  }
}
