// Metrics of a task are read where the run chose its network; quantities of figures, at the end of training.
#include "sweep/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "results/analysis/comparison.hpp"

namespace stiefel {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

double last(const std::vector<double>& values) { return values.empty() ? nothing : values.back(); }

/// The last row of a dataset with one row per snapshot.
std::vector<double> last_row(const RunDataset* dataset) {
  if (!dataset || dataset->shape.size() != 2 || dataset->shape[0] == 0) return {};
  return {dataset->values.end() - std::ptrdiff_t(dataset->shape[1]), dataset->values.end()};
}

const RunDataset* below(const RunData& run, const std::string& group, const std::string& name) {
  for (const RunDataset& dataset : run.datasets)
    if (dataset.path.starts_with(group) && dataset.path.ends_with("/" + name)) return &dataset;
  return nullptr;
}

Statistics singular_values(const RunData& run) {
  return statistics_of(last_row(below(run, "/spectrum/", "singular_values")));
}

double orthogonality_drift(const RunData& run) {
  const RunDataset* defects = below(run, "/orthogonality/", "defect_fro");
  const std::vector<double> at_the_end = last_row(defects);
  return at_the_end.empty() ? nothing : at_the_end[0] / defects->values[0];
}

/// ‖∂L/∂h_1‖ / ‖∂L/∂h_T‖ of the first layer, of the last step's loss where figures show that.
double gradient_ratio(const RunData& run) {
  for (const char* name : {"last_step_grad_norm", "hidden_grad_norm"}) {
    std::vector<double> norms = last_row(below(run, "/gradient", name));
    std::erase_if(norms, [](double x) { return std::isnan(x); });
    if (!norms.empty()) return norms.front() / norms.back();
  }
  return nothing;
}

double slope(const RunData& run) { return statistics_of(last_row(run.find("/blocks/activation_slope"))).mean; }

/// A metric that is no metric of a task, and the group that it is made of.
struct Quantity {
  const char *metric, *group;
  double (*of)(const RunData& run);
};
constexpr Quantity quantities[] = {
    {"largest_singular_value", "/spectrum", [](const RunData& run) { return singular_values(run).largest; }},
    {"smallest_singular_value", "/spectrum", [](const RunData& run) { return singular_values(run).least; }},
    {"mean_singular_value", "/spectrum", [](const RunData& run) { return singular_values(run).mean; }},
    {"orthogonality_drift", "/orthogonality", orthogonality_drift},
    {"gradient_ratio", "/gradient", gradient_ratio},
    {"slope", "/blocks", slope},
};

const Quantity* quantity(const std::string& metric) {
  const auto found = std::ranges::find(quantities, metric, &Quantity::metric);
  return found == std::end(quantities) ? nullptr : found;
}

/// The best so far, or where the network was chosen.
double validation_value(const RunData& run, const PublishedRow& row) {
  const std::vector<double>&values = run.column("/epochs/valid_" + row.metric), &best = run.column("/epochs/is_best");
  if (row.measured_as == "validation")
    for (std::size_t i = std::min(values.size(), best.size()); i-- > 0;)
      if (best[i] == 1) return values[i];
  const Statistics statistics = statistics_of(values);
  return row.higher_is_better() ? statistics.largest : statistics.least;
}

double value_of(const RunData& run, const PublishedRow& row) {
  if (const Quantity* found = quantity(row.metric)) return found->of(run);
  if (row.measured_as == "test" || row.measured_as == "best test") return last(run.column("/final/test_" + row.metric));
  return validation_value(run, row);
}

Index first_reached(const RunData& run, const PublishedRow& row) {
  const std::vector<double>&values = run.column("/epochs/valid_" + row.metric), &steps = run.column("/epochs/step");
  const bool higher = row.higher_is_better();
  for (std::size_t i = 0; i < std::min(values.size(), steps.size()); ++i)
    if (higher ? values[i] >= row.judge->value : values[i] <= row.judge->value) return Index(steps[i]);
  return -1;
}

/// All but `better_than`, which needs another row.
bool fulfils(const PublishedRow& row, const Measurement& measurement) {
  const Criterion& judge = *row.judge;
  switch (judge.kind) {
    case Criterion::Kind::reaches:
      return measurement.reached_step >= 0 && measurement.reached_step <= judge.by;
    case Criterion::Kind::never:
      return measurement.reached_step < 0 && !std::isnan(measurement.value);
    case Criterion::Kind::within:
      return measurement.value >= judge.low && measurement.value <= judge.high;
    case Criterion::Kind::better_than:
      return false;
  }
  return false;
}

std::string provenance(const RunData& run, const std::string& name) {
  for (const auto& [key, value] : run.header.provenance)
    if (key == name) return value;
  return {};
}

}  // namespace

std::vector<std::string> groups_for(const PublishedRow& row) {
  const Quantity* found = quantity(row.metric);
  return found ? std::vector<std::string>{found->group} : std::vector<std::string>{"/epochs", "/final"};
}

void measure(const RunData& run, const PublishedRow& row, Measurement& measurement) {
  measurement.state = run.status.state;
  measurement.run = run.path;
  measurement.step = run.committed_step;
  measurement.cpu_seconds = run.status.cpu_seconds;
  measurement.commit = provenance(run, "git_commit").substr(0, 10) + (provenance(run, "git_dirty") == "yes" ? "+" : "");
  measurement.value = value_of(run, row);
  if (!row.judge) return;
  measurement.reached_step = first_reached(run, row);
  measurement.fulfilled = fulfils(row, measurement);
}

nlohmann::ordered_json json_of(const Measurement& measurement) {
  return {{"seed", measurement.seed},
          {"state", measurement.state},
          {"value", measurement.value},
          {"share", measurement.share},
          {"step", measurement.step},
          {"reached_step", measurement.reached_step},
          {"cpu_seconds", measurement.cpu_seconds},
          {"commit", measurement.commit},
          {"settings", measurement.settings}};
}

Measurement measurement_from(const nlohmann::json& json, const PublishedRow& row) {
  const auto number = [&](const char* key) { return json.at(key).is_null() ? nothing : json.at(key).get<double>(); };
  Measurement measurement{.seed = json.at("seed"),
                          .state = json.at("state"),
                          .value = number("value"),
                          .share = number("share"),
                          .reached_step = json.at("reached_step"),
                          .step = json.at("step"),
                          .cpu_seconds = number("cpu_seconds"),
                          .commit = json.at("commit"),
                          .settings = json.at("settings")};
  measurement.fulfilled = row.judge && fulfils(row, measurement);
  return measurement;
}

}  // namespace stiefel
