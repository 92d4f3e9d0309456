#include "training/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stiefel {

template <class S> void require_selection(const Experiment& experiment, const Task<S>& task) {
  const TrainOptions& train = experiment.train;
  std::vector<std::string> names;
  for (const Quantity& quantity : quantities(measured(experiment, task), experiment.record.lengths))
    names.push_back(quantity.name);
  if (std::ranges::find(names, train.select) == names.end())
    throw Error(fmt::format("{}train.select: \"{}\" is not measured by the task {}; it has {}",
                            experiment.place_of("train.select"), train.select, experiment.task.plugin,
                            fmt::join(names, ", ")));
  const Split split = selecting_split(train);
  if (task.batches(split) > 0) return;
  const auto& groups = experiment.optimizer;
  const auto plateau = std::ranges::find_if(groups, [](const auto& group) { return group.schedule.kind == "plateau"; });
  const std::string key = train.patience > 0       ? "train.patience"
                          : train.target > 0       ? "train.target"
                          : train.select != "loss" ? "train.select"
                          : split == Split::test   ? "train.select_on"
                          : plateau != groups.end()
                              ? experiment.key_of_group(std::size_t(plateau - groups.begin()), "schedule.kind")
                              : "";
  if (!key.empty())
    throw Error(fmt::format("{}{} needs a {} split, but the task {} has none; give it one, or remove this",
                            experiment.place_of(key), key, name_of(split), experiment.task.plugin));
}

Selection::Selection(const TrainOptions& train, const std::vector<Quantity>& quantities) : train_(train) {
  const auto chosen = std::ranges::find(quantities, train.select, &Quantity::name);
  if (chosen == quantities.end()) return;
  selecting_ = std::size_t(chosen - quantities.begin());
  higher_is_better_ = chosen->higher_is_better;
}

bool Selection::take(Index step, const std::vector<double>& values) {
  const double value = values[selecting_];
  const bool improved = std::isfinite(best_) ? better(value, best_) : std::isfinite(value);
  if (improved) best_ = value, best_step_ = step;
  waited_ = improved ? 0 : waited_ + 1;
  return improved;
}

std::string Selection::reason_to_stop() const {
  if (train_.patience > 0 && waited_ >= train_.patience)
    return fmt::format("{} evaluations without improvement", waited_);
  if (train_.target > 0 && std::isfinite(best_) && !better(train_.target, best_))
    return fmt::format("{} is {:.6g}, which reaches train.target", train_.select, best_);
  return {};
}

void Selection::serialise(Archive& archive) {
  archive.value("best_metric", best_);
  archive.value("best_step", best_step_);
  archive.value("waited", waited_);
}

template void require_selection(const Experiment&, const Task<float>&);
template void require_selection(const Experiment&, const Task<double>&);

}  // namespace stiefel
