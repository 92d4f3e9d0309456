#include "training/evaluate_network.hpp"

#include <fmt/format.h>

#include "training/checkpoint.hpp"
#include "training/session.hpp"

namespace stiefel {
namespace {

/// Throws Error if normalization, names or symbols, which follow from the training data, are not those of training.
template <class S> void demand_same_form(const Task<S>& task, const DataForm& trained) {
  if (task.form() != trained)
    throw Error(
        "the changed task would normalize inputs or name classes differently than in training; keep the training data "
        "and change only validation or test data");
}

template <class S> Evaluated evaluate_as(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                                         const std::filesystem::path& network, Split split,
                                         const std::optional<TrainedAs>& trained) {
  Session<S> session(loaded, registry, options, Extent::network);
  Evaluated found;
  found.task = loaded.experiment.task.plugin;
  found.step = read_network(network, *session.network);
  if (options.trained)
    demand_same_form(*session.task, options.trained->form);
  else if (trained)
    demand_same_form(*session.task,
                     make_task<S>(trained->loaded.experiment, registry, trained->options, Extent::network)->form());
  found.batches = session.batches(split);
  if (found.batches == 0)
    throw Error(fmt::format("the task {} has no {} split; choose another with --split", found.task, name_of(split)));
  Watchdog watchdog(0, [] {});
  double broken = 0;
  const std::vector<double> values =
      session.evaluate(split, watchdog, {.not_finite = [&](const Batch<S>&, double loss) { broken = loss; }}).values;
  if (values.empty())
    throw Error(fmt::format("the loss on the {} split is {}: the network diverges there", name_of(split), broken),
                Exit::diverged);
  found.values.emplace_back("loss", values[0]);
  const std::vector<Metric> metrics = session.metrics();
  for (std::size_t i = 0; i < metrics.size(); ++i) found.values.emplace_back(metrics[i].name, values[i + 1]);
  if (split == Split::test) found.baseline = session.task->baseline(), found.baselines = session.task->baselines();
  return found;
}

}  // namespace

Evaluated evaluate(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                   const std::filesystem::path& network, Split split, const std::optional<TrainedAs>& trained) {
  return loaded.experiment.with_scalar(
      [&]<class S>(S) { return evaluate_as<S>(loaded, registry, options, network, split, trained); });
}

}  // namespace stiefel
