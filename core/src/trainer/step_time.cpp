// The clock around Session::pass and Updater::step.
#include "trainer/step_time.hpp"

#include <algorithm>
#include <chrono>

#include "trainer/session.hpp"

namespace stiefel {
namespace {

/// A product and its two gradients cost three times the product.
template <class S> double step_flops(Session<S>& session) {
  const Model<S>& model = session.network->model();
  const TaskShape& shape = model.task;
  const double columns = double(session.experiment.train.batch * shape.steps);
  const double scored = shape.readout == ReadoutKind::every ? columns : double(session.experiment.train.batch);
  double flops = 6.0 * double(model.readout->rows() * model.readout->size()) * scored;
  if (shape.input == InputKind::dense) flops += 4.0 * double(model.cell->input_rows() * shape.input_size) * columns;
  for (Index i = 0; i < model.maps->count(); ++i) {
    const NetworkMap<S>& map = (*model.maps)[i];
    const Cost cost = map.plugin().cost(1);
    flops += cost.refresh + (map.dense() ? 6.0 * double(map.rows() * map.cols()) * columns + cost.materialise + cost.pullback
                                         : (cost.apply + cost.apply_adjoint + cost.accumulate) * columns + cost.finish);
  }
  return flops;
}

template <class S> StepTime measure(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, double seconds) {
  using Clock = std::chrono::steady_clock;
  Session<S> session(loaded, registry, options);
  Batch<S> batch;
  session.task->fill(Split::train, 0, batch);
  std::vector<double> times;
  const auto begin = Clock::now();
  for (Index step = 0; step < 4 || (Clock::now() - begin < std::chrono::duration<double>(seconds) && step < 1000); ++step) {
    const auto start = Clock::now();
    session.pass(batch, step + 1, {});
    session.updater->step(step + 1, *session.network);
    if (step > 0) times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back(), step_flops(session), Index(times.size())};
}

}  // namespace

StepTime measure_step(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, double seconds) {
  return loaded.experiment.scalar == "float64" ? measure<double>(loaded, registry, options, seconds)
                                               : measure<float>(loaded, registry, options, seconds);
}

}  // namespace stiefel
