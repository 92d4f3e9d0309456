// The clock around Session::pass and Updater::step, and around the packed product.
#include "trainer/step_time.hpp"

#include <algorithm>
#include <chrono>

#include <stiefel/product.hpp>

#include "engine/slices.hpp"
#include "trainer/session.hpp"

namespace stiefel {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

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
  Session<S> session(loaded, registry, options);
  Batch<S> batch;
  session.task->fill(Split::train, 0, batch);
  std::vector<double> times;
  const auto begin = Clock::now();
  for (Index step = 0; step < 4 || (seconds_since(begin) < seconds && step < 1000); ++step) {
    const auto start = Clock::now();
    session.pass(batch, step + 1, {});
    session.updater->step(step + 1, *session.network);
    if (step > 0) times.push_back(seconds_since(start));
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back(), step_flops(session), Index(times.size())};
}

template <class S>
KernelRate rate_of_kernel(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, double seconds) {
  Session<S> session(loaded, registry, options);
  const NetworkMap<S>& map = (*session.network->model().maps)[0];
  const Index batch = session.experiment.train.batch, slices = slice_count(batch);
  KernelRate rate{.rows = map.rows(), .cols = map.cols(), .columns = (batch + slices - 1) / slices};
  PackedProduct<S> product;
  product.pack(cview(Matrix<S>(Matrix<S>::Random(rate.rows, rate.cols))));
  const Index threads = session.workers.threads();
  const Matrix<S> X = Matrix<S>::Random(rate.cols, rate.columns * threads);
  Matrix<S> Y(rate.rows, rate.columns * threads);

  const double flops = 2.0 * double(rate.rows * rate.cols * rate.columns);
  const auto products = Index(std::max(1.0, 5e8 / flops));  // some milliseconds: starting and joining threads does not count
  std::vector<double> rates;
  const auto begin = Clock::now();
  for (Index repeat = 0; repeat < 4 || seconds_since(begin) < seconds; ++repeat) {
    const auto start = Clock::now();
    session.workers.run(int(threads), [&](int thread) {
      const Index first = thread * rate.columns;
      for (Index i = 0; i < products; ++i)
        product.multiply(cview(X.middleCols(first, rate.columns)), view(Y.middleCols(first, rate.columns)));
    });
    if (repeat > 0) rates.push_back(flops * double(products * threads) / seconds_since(start));
  }
  std::sort(rates.begin(), rates.end());
  rate.median = rates[rates.size() / 2], rate.slowest = rates.front(), rate.fastest = rates.back();
  rate.repeats = Index(rates.size());
  return rate;
}

}  // namespace

StepTime measure_step(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, double seconds) {
  return loaded.experiment.scalar == "float64" ? measure<double>(loaded, registry, options, seconds)
                                               : measure<float>(loaded, registry, options, seconds);
}

KernelRate measure_kernel(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options, double seconds) {
  return loaded.experiment.scalar == "float64" ? rate_of_kernel<double>(loaded, registry, options, seconds)
                                               : rate_of_kernel<float>(loaded, registry, options, seconds);
}

}  // namespace stiefel
