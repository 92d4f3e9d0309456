#include "results/analysis/report/thin.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "results/analysis/report/spread.hpp"

namespace stiefel::report {
namespace {

void keep_rows(RunDataset& dataset, const std::set<std::size_t>& rows) {
  const std::size_t width = dataset.values.size() / dataset.shape[0];
  std::vector<double> kept;
  for (const std::size_t row : rows)
    kept.insert(kept.end(), &dataset.values[row * width], &dataset.values[row * width] + width);
  dataset.values = std::move(kept);
  dataset.shape[0] = rows.size();
}

/// Adds map_suffix: up to heat_columns of the snapshots, including the first and the last, and up to heat_rows of the
/// time steps.
void add_gradient_map(RunData& run, const std::string& group) {
  const RunDataset* norms = run.find(group + "/hidden_grad_norm");
  const std::vector<double> snapshots = rows_of(run, group + "/snapshot");
  const std::size_t count = snapshots.size();
  if (!norms || count < 2 || norms->shape.size() != 2 || norms->shape[0] != count) return;
  const std::size_t steps = norms->shape[1];
  const std::span<const double> last = std::span(norms->values).last(steps);
  if (std::none_of(last.begin(), last.end(), [](double value) { return std::isfinite(value); })) return;
  const std::vector<double> t = rows_of(run, group + "/t");
  RunDataset map, columns, rows;
  map.path = group + map_suffix;
  columns.path = map.path + "/snapshot";
  rows.path = map.path + "/t";
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0, most = std::min(count, heat_columns); i < most; ++i)
    chosen.push_back(i * (count - 1) / (most - 1));
  map.shape = {std::min(steps, heat_rows), chosen.size()};
  map.units = norms->units;
  rows.shape = {map.shape[0]};
  columns.shape = {map.shape[1]};
  for (const std::size_t snapshot : chosen) columns.values.push_back(snapshots[snapshot]);
  for (std::size_t row = 0; row < map.shape[0]; ++row) {
    const std::size_t step = (2 * row + 1) * steps / (2 * map.shape[0]);
    rows.values.push_back(step < t.size() ? t[step] : double(step));
    for (const std::size_t snapshot : chosen) map.values.push_back(norms->values[snapshot * steps + step]);
  }
  for (RunDataset* added : {&map, &columns, &rows}) run.datasets.push_back(std::move(*added));
}

bool has_rows(const RunDataset* dataset, std::size_t axes) {
  return dataset && dataset->shape.size() >= axes && dataset->shape[0] > 0;
}

}  // namespace

std::vector<std::string> gradient_groups(const RunData& run) {
  std::vector<std::string> groups;
  const std::string norm = "/hidden_grad_norm";
  for (const RunDataset& dataset : run.datasets)
    if (dataset.path.starts_with("/gradient") && dataset.path.ends_with(norm))
      groups.push_back(dataset.path.substr(0, dataset.path.size() - norm.size()));
  return groups;
}

void thin(RunData& run) {
  for (RunDataset& dataset : run.datasets)
    if (dataset.path.starts_with("/spectrum/") && has_rows(&dataset, 2)) keep_rows(dataset, {0, dataset.shape[0] - 1});
  for (const std::string& group : gradient_groups(run)) {
    const RunDataset* snapshots = run.find(group + "/snapshot");
    if (!has_rows(snapshots, 1)) continue;
    const std::size_t count = snapshots->shape[0];
    add_gradient_map(run, group);
    for (RunDataset& dataset : run.datasets)
      if (dataset.path.starts_with(group + "/") && dataset.path != group + "/t" &&
          !dataset.path.starts_with(group + map_suffix) && has_rows(&dataset, 1) && dataset.shape[0] == count)
        keep_rows(dataset, {0, count - 1});
  }
}

}  // namespace stiefel::report
