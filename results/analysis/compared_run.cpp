// What a comparison shows of one run: the metric by which the run chose its network, at the last evaluation that was the
// best so far, or at the last one. `stiefel.runs` of the Python package lists all metrics, at the step of the best network.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <stiefel/error.hpp>

#include "base/suggestion.hpp"
#include "results/analysis/comparison.hpp"

namespace stiefel {
namespace {

bool has_numbers(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double x) { return !std::isnan(x); });
}

std::string configured(const RunData& run, const std::string& key) {
  const auto found = run.configuration.find(key);
  return found == run.configuration.end() ? "" : found->second;
}

/// The column of /epochs that selects the best model, or the training loss if that has no numbers. A diverged run keeps
/// the former, because it may end before the first number.
std::string selecting_metric(const RunData& run) {
  const std::string selected = configured(run, "train.select");
  const std::string name =
      (configured(run, "train.select_on") == "best_test" ? "test_" : "valid_") + (selected.empty() ? "loss" : selected);
  const bool unselected = !has_numbers(run.column("/epochs/" + name)) && has_numbers(run.column("/epochs/train_loss"));
  return unselected && run.status.state != "diverged" ? "train_loss" : name;
}

/// The name of a metric at a length of record.lengths, whatever length it names; empty: the metric itself.
std::string at_length(const std::string& metric, const std::string& length) {
  if (length.empty()) return metric;
  const std::size_t at = metric.rfind("_at_");
  const bool named = at != metric.npos && metric.find_first_not_of("0123456789", at + 4) == metric.npos;
  return (named ? metric.substr(0, at) : metric) + "_at_" + length;
}

/// The path of a metric in the run; empty if it has none. A metric may be named by its path, or without its split,
/// which then is validation.
std::string path_of(const RunData& run, const std::string& metric) {
  if (const std::string path = path_of_metric(metric); !path.empty()) {
    const RunDataset* named = run.find(path);
    return named && named->is_column() ? path : "";
  }
  for (const std::string& name : {metric, "valid_" + metric})
    for (const char* table : {"/final/", "/epochs/", "/outcome/"})
      if (const std::string path = table + name; has_numbers(run.column(path))) return path;
  return {};
}

void find_reached(const RunData& run, const std::vector<double>& values, double threshold, ComparedRun& found) {
  const std::vector<double>&steps = run.column("/epochs/step"), &seconds = run.column("/epochs/seconds");
  const std::size_t row = row_reaching(values, threshold, found.better);
  if (row >= std::min({values.size(), steps.size(), seconds.size()})) return;
  found.reached_step = steps[row];
  found.reached_seconds = std::accumulate(seconds.begin(), seconds.begin() + std::ptrdiff_t(row) + 1, 0.0);
}

}  // namespace

double last_number(const std::vector<double>& values) {
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : values.back();
}

std::optional<double> at_best(const RunData& run, const std::vector<double>& values) {
  const std::vector<double>& best = run.column("/epochs/is_best");
  for (std::size_t i = std::min(best.size(), values.size()); i-- > 0;)
    if (best[i] == 1) return values[i];
  return std::nullopt;
}

std::size_t row_reaching(const std::vector<double>& values, double threshold, Better better) {
  const auto reaches = [&](double x) { return better == Better::higher ? x >= threshold : x <= threshold; };
  return std::size_t(std::ranges::find_if(values, reaches) - values.begin());
}

void refuse_metric(const std::string& metric, const std::set<std::string>& known) {
  if (!path_of_metric(metric).empty()) throw Error(fmt::format("no run has {} with one number in each row", metric));
  if (known.contains(metric) || known.contains("valid_" + metric))
    throw Error(fmt::format("no run has a value of {} yet", metric));
  std::set<std::string> metrics = known;
  for (const char* column : {"epoch", "is_best", "seconds", "step"}) metrics.erase(column);
  const std::string close = suggestion(metric, {metrics.begin(), metrics.end()});
  const std::string names =
      fmt::format("; choose from {}, or a path such as orthogonality/recurrent/defect_fro", fmt::join(metrics, ", "));
  throw Error(fmt::format("no run has the metric {}{}", metric, close.empty() ? names : close));
}

Better described_direction(const std::string& description) {
  return description == "higher is better"  ? Better::higher
         : description == "lower is better" ? Better::lower
                                            : Better::unknown;
}

/// Older files do not describe the direction; it is then known only for losses.
Better direction(const RunDataset& column) {
  const Better described = described_direction(column.description);
  return described == Better::unknown && column.path.ends_with("_loss") ? Better::lower : described;
}

std::string ComparedRun::text(const std::string& key) const {
  if (key == "state") return state;
  if (key == "id") return id;
  const auto found = configuration.find(key);
  return found == configuration.end() ? "-" : found->second;
}

std::string path_of_metric(const std::string& metric) {
  if (metric.find('/') == metric.npos) return {};
  return metric.starts_with('/') ? metric : "/" + metric;
}

RunRequest comparison_request(const std::string& metric) {
  RunRequest request{.paths = {"/epochs", "/final", "/outcome"}, .provenance = false};
  if (const std::string path = path_of_metric(metric); !path.empty()) request.paths.push_back(path);
  return request;
}

ComparedRun compared_run(const RunData& run, const ComparedQuantity& quantity) {
  ComparedRun found;
  found.path = run.path;
  found.id = run.header.run_id;
  found.state = run.status.state;
  found.configuration = run.configuration;
  found.parameters = run.header.parameters;
  found.plugins = run.header.plugins;
  found.data = run.header.datasets;
  for (const RunDataset& dataset : run.datasets)
    if (const std::string table = "/epochs/"; quantity.reach && dataset.path.starts_with(table) &&
                                              direction(dataset) != Better::unknown && has_numbers(dataset.values))
      found.reachable.insert(dataset.path.substr(table.size()));
  const std::string path = quantity.metric.empty() ? "/epochs/" + at_length(selecting_metric(run), quantity.at)
                                                   : path_of(run, at_length(quantity.metric, quantity.at));
  const RunDataset* column = run.find(path);
  if (!column || !has_numbers(column->values)) return found;
  const bool by_path = path == path_of_metric(quantity.metric), evaluated = path.starts_with("/epochs/");
  found.metric = by_path ? path.substr(1) : path.substr(path.rfind('/') + 1);
  found.better = direction(*column);
  const double last = last_number(column->values);
  found.value = evaluated && !by_path ? at_best(run, column->values).value_or(last) : last;
  if (quantity.reach && found.better != Better::unknown) {
    if (evaluated && by_path) found.reachable.insert(found.metric);
    find_reached(run, evaluated ? column->values : run.column("/epochs/" + found.metric), *quantity.reach, found);
  }
  return found;
}

}  // namespace stiefel
