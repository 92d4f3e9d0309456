// The training steps of an experiment, ten in most, as JSON on stdout: initial parameters, batches, and the loss before
// each step. ten_steps.py computes the losses again from the first two alone.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/load.hpp"
#include "sdk/blas.hpp"
#include "training/session.hpp"

using namespace stiefel;

namespace {

nlohmann::json batch_json(const Batch<double>& batch, const TaskShape& shape) {
  nlohmann::json json{{"sequences", batch.sequences()}, {"steps", batch.steps()}, {"weights", batch.weights()}};
  if (shape.input == InputKind::dense)
    json["inputs"] = std::vector<double>(batch.inputs().data(), batch.inputs().data() + batch.inputs().size());
  if (shape.input == InputKind::symbols) json["symbols"] = batch.symbols();
  if (shape.labels)
    json["labels"] = batch.labels();
  else
    json["targets"] = std::vector<double>(batch.targets().data(), batch.targets().data() + batch.targets().size());
  return json;
}

}  // namespace

int main(int count, char** words) {
  start_blas();
  Registry registry({STIEFEL_PLUGINS});
  const LoadedExperiment loaded =
      load_experiment(words[1], std::vector<std::string>(words + 2, words + count), registry);
  Session<double> session(loaded, registry, {});
  nlohmann::json json;
  for (Index i = 0; i < session.network->layout().count(); ++i) {
    const BlockSpec& block = session.network->layout().block(i);
    const auto values = session.network->theta()[i];
    json["parameters"][block.name] = {
        {"rows", block.rows}, {"cols", block.cols}, {"values", std::vector<double>(values.begin(), values.end())}};
  }
  for (Index step = 1; step <= session.total_steps(); ++step) {
    Batch<double> batch;
    session.task->fill(Split::train, step - 1, batch);
    json["batches"].push_back(batch_json(batch, session.task->shape()));
    json["losses"].push_back(session.pass(batch, step, {}).loss);
    session.updater->step(step, *session.network, session.workers);
  }
  fmt::print("{}\n", json.dump());
}
