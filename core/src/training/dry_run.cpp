#include "training/dry_run.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "base/printable.hpp"
#include "engine/memory.hpp"
#include "record/provenance.hpp"
#include "training/recording.hpp"
#include "training/step.hpp"

namespace stiefel {
namespace {

/// Degrees of freedom: an orthogonal block has n(n−1)/2, a unitary one n².
Index dimension(const Layout& layout) {
  Index sum = 0;
  for (Index i = 0; i < layout.count(); ++i) {
    const BlockSpec& block = layout.block(i);
    const Index n = block.cols;
    sum += block.manifold == Manifold::orthogonal ? n * (n - 1) / 2
           : block.manifold == Manifold::unitary  ? n * n
                                                  : block.size;
  }
  return sum;
}

template <class S> DryRun dry(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options) {
  Session<S> session(loaded, registry, options);
  RecorderThread nowhere;
  const Recording<S> recording(nowhere, loaded.experiment, *session.task, *session.network, *session.updater,
                               session.total_steps());
  const Layout& layout = session.network->layout();
  DryRun result{{}, session.remarks};
  const auto line = [&](std::string text) { result.lines.push_back(std::move(text)); };
  line(fmt::format("run        {}/{}", loaded.experiment.name, loaded.id));
  const TaskShape shape = session.task->shape();
  line(fmt::format("task       {}: {}, {}, {}, {} training, {} validation, {} test batches of {}",
                   loaded.experiment.task.plugin, counted(shape.steps, "step"), counted(shape.input_size, "input"),
                   counted(shape.output_size, "output"), session.batches(Split::train),
                   session.batches(Split::validation), session.batches(Split::test), loaded.experiment.train.batch));
  if (const std::string summary = session.task->summary(); !summary.empty()) line("data       " + summary);
  line(fmt::format("parameters {} in {}", layout.size(), counted(layout.count(), "block")));
  if (dimension(layout) != layout.size())
    line(fmt::format("dimension  {}, that of the blocks' manifolds", dimension(layout)));
  std::size_t width = 24;
  for (const BlockSpec& block : layout.blocks()) width = std::max(width, block.name.size());
  for (Index i = 0; i < layout.count(); ++i)
    line(fmt::format("  {:<{}} {:>9}{}", layout.block(i).name, width, layout.block(i).size,
                     session.updater->moves(i) ? "" : "  frozen"));
  for (const auto& [name, map, blocks] : session.network->model().maps)
    line(fmt::format("map        {}{} {} × {}, {} route", name.starts_with("layers.") ? name + ": " : "",
                     map.plugin().name, map.rows(), map.cols(), map.dense() ? "dense" : "structured"));
  Batch<S> batch;
  Stopwatch watch;
  const auto take = [&](Index number) {
    session.network->take_state();
    return take_step(session, number, false, watch, [&](Index k) -> const Batch<S>& {
      session.task->fill(Split::train, k % session.batches(Split::train), batch);
      return batch;
    });
  };
  const PassResult pass = take(1).pass;
  watch.take();
  take(2);  // the first step is slower, because it touches new memory
  const std::vector<double> phases = watch.take();
  const double seconds = std::accumulate(phases.begin(), phases.end(), 0.0) - phases[std::size_t(Phase::data)];
  const std::string baselines = session.baselines_text(6);
  line(fmt::format("first loss {}{}",
                   pass.weight > 0 ? fmt::format("{:.6g}", pass.loss) : "none, the batch has no target",
                   baselines.empty() ? "" : " (" + baselines + ")"));
  const double bytes = double(peak_rss_bytes()) + recorded_bytes(session.network->layout(), loaded.experiment);
  line(fmt::format("memory     about {:.0f} MB", bytes / 1e6));
  line(fmt::format("time       {:.3g} s a step, {} for {}, evaluations not included", seconds,
                   duration_text(seconds * double(session.total_steps())), counted(session.total_steps(), "step")));
  return result;
}

}  // namespace

std::vector<std::string> check_experiment(const LoadedExperiment& loaded, Registry& registry,
                                          const RunOptions& options) {
  return loaded.experiment.with_scalar(
      [&]<class S>(S) { return Session<S>(loaded, registry, options, Extent::sizes).remarks; });
}

DryRun dry_run(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options) {
  return loaded.experiment.with_scalar([&]<class S>(S) { return dry<S>(loaded, registry, options); });
}

}  // namespace stiefel
