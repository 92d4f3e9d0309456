#include "training/step_time.hpp"

#include <algorithm>

#include <stiefel/product.hpp>

#include "engine/slices.hpp"
#include "training/clock.hpp"
#include "training/step.hpp"

namespace stiefel {
namespace {

/// Returns the operations of a step whose batches are like this one. A product has two gradients of the same cost.
template <class S> StepParts step_flops(Session<S>& session, const Batch<S>& batch) {
  const Model<S>& model = session.network->model();
  const TaskShape& shape = model.task;
  double columns = 0;  // one for each step of each sequence
  for (Index b = 0; b < batch.sequences(); ++b) columns += double(batch.length(b));
  const double scored = shape.readout == ReadoutKind::every ? columns : double(batch.sequences());
  StepParts flops{.backward = 6.0 * double(model.readout->rows() * model.readout->size()) * scored};
  Index size = shape.input == InputKind::dense ? shape.input_size : 0;
  for (const Layer<S>& layer : model.layers) {
    const bool first = &layer == &model.layers.front();
    for (const Recurrence<S>& r : layer.recurrences) {
      const double product = 2.0 * double(r.cell->input_rows() * size) * columns;
      flops.forward += product;
      flops.backward += (first ? 1 : 2) * product;
    }
    const double gate = layer.gate.present() ? 4.0 * double(layer.rows * layer.rows) * columns : 0;
    flops.forward += gate, flops.backward += 2 * gate;
    size = layer.rows;
  }
  for (const auto& [name, map, blocks] : model.maps) {
    const Cost cost = map.plugin()->cost(1);
    const double product = 2.0 * double(map.rows() * map.cols());
    const bool formed_apart = map.dense() && map.plugin()->matrix().size() == 0;
    flops.refresh += cost.refresh + (formed_apart ? cost.materialise : 0);
    flops.forward += (map.dense() ? product : cost.apply) * columns;
    flops.backward += map.dense() ? 2 * product * columns + cost.pullback
                                  : (cost.apply_adjoint + cost.accumulate) * columns + cost.finish;
  }
  const double batches = double(session.experiment.train.accumulate);
  flops.forward *= batches, flops.backward *= batches;
  return flops;
}

template <class S>
StepTime measure(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, double seconds) {
  Session<S> session(loaded, registry, options);
  Batch<S> batch;
  session.task->fill(Split::train, 0, batch);
  std::vector<double> whole, refresh, forward, backward, update;
  Stopwatch watch;
  const auto begin = Clock::now();
  for (Index step = 0; step < 4 || (seconds_since(begin) < seconds && step < 1000); ++step) {
    const auto start = Clock::now();
    const PassResult pass =
        take_step(session, step + 1, false, watch, [&](Index) -> const Batch<S>& { return batch; }).pass;
    const double seconds_of_step = seconds_since(start);
    const std::vector<double> phases = watch.take();
    if (step == 0) continue;
    const auto of = [&](Phase phase) { return phases[std::size_t(phase)]; };
    whole.push_back(seconds_of_step);
    refresh.push_back(of(Phase::param_map));
    forward.push_back(pass.forward_seconds);
    backward.push_back(of(Phase::passes) - pass.forward_seconds);
    update.push_back(of(Phase::optimizer));
  }
  StepTime time;
  time.median = median(whole), time.fastest = std::ranges::min(whole), time.slowest = std::ranges::max(whole);
  time.median_parts = {median(refresh), median(forward), median(backward), median(update)};
  time.flops = step_flops(session, batch);
  time.repeats = Index(whole.size());
  const auto& maps = session.network->model().maps;
  time.dense = !maps.empty() && maps[0]->dense();
  return time;
}

template <class S> KernelRate rate_of_kernel(const LoadedExperiment& loaded, Registry& registry,
                                             const RunOptions& options, double seconds) {
  Session<S> session(loaded, registry, options);
  const auto& maps = session.network->model().maps;
  if (maps.empty()) throw Error("the network has no recurrent map, so there is no product to measure");
  const NetworkMap<S>& map = maps[0].map;
  const Index batch = session.experiment.train.batch, slices = slice_count(batch);
  KernelRate rate{.rows = map.rows(), .cols = map.cols(), .columns = (batch + slices - 1) / slices};
  PackedProduct<S> product;
  product.pack(Matrix<S>(Matrix<S>::Random(rate.rows, rate.cols)));
  const Index threads = session.workers.threads();
  const Matrix<S> X = Matrix<S>::Random(rate.cols, rate.columns * threads);
  Matrix<S> Y(rate.rows, rate.columns * threads);

  const double flops = 2.0 * double(rate.rows * rate.cols * rate.columns);
  const auto products =
      Index(std::max(1.0, 5e8 / flops));  // some milliseconds, so that starting and joining threads is negligible
  rate.rate = measure_rate(session.workers, flops * double(products), seconds, [&](int thread) {
    const Index first = thread * rate.columns;
    for (Index i = 0; i < products; ++i)
      product.multiply(X.middleCols(first, rate.columns), view(Y.middleCols(first, rate.columns)));
  });
  return rate;
}

}  // namespace

StepTime measure_step(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, double seconds) {
  return loaded.experiment.with_scalar([&]<class S>(S) { return measure<S>(loaded, registry, options, seconds); });
}

KernelRate measure_kernel(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                          double seconds) {
  return loaded.experiment.with_scalar(
      [&]<class S>(S) { return rate_of_kernel<S>(loaded, registry, options, seconds); });
}

}  // namespace stiefel
