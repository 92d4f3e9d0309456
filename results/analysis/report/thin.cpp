#include "results/analysis/report/thin.hpp"

#include <set>

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

bool has_rows(const RunDataset* dataset, std::size_t axes) {
  return dataset && dataset->shape.size() >= axes && dataset->shape[0] > 0;
}

}  // namespace

void thin(RunData& run, bool keep_gradients) {
  std::erase_if(run.datasets, [](const RunDataset& dataset) {
    return dataset.path.ends_with("/singular_values") || dataset.path.ends_with("/eigenvalue_phase") ||
           dataset.path.ends_with("/eigenvalue_modulus");
  });
  for (RunDataset& dataset : run.datasets)
    if (dataset.path.starts_with("/spectrum/") && has_rows(&dataset, 2)) keep_rows(dataset, {0, dataset.shape[0] - 1});
  const RunDataset* snapshots = run.find("/gradient/snapshot");
  if (!has_rows(snapshots, 1)) return;
  const std::size_t count = snapshots->shape[0];
  std::set<std::size_t> rows{0, count - 1};
  for (std::size_t i = 1; keep_gradients && i < std::min(count, heat_columns); ++i)
    rows.insert(i * (count - 1) / (std::min(count, heat_columns) - 1));
  for (RunDataset& dataset : run.datasets)
    if (dataset.path.starts_with("/gradient/") && dataset.path != "/gradient/t" && has_rows(&dataset, 1) &&
        dataset.shape[0] == count)
      keep_rows(dataset, rows);
}

}  // namespace stiefel::report
