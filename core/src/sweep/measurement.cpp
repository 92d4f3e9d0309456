// Metrics of a task are read where the run chose its network; quantities of figures, at the end of training.
#include "sweep/measurement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "results/analysis/comparison.hpp"

namespace stiefel {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

const RunDataset* below(const RunData& run, const std::string& group, const std::string& name) {
  for (const RunDataset& dataset : run.datasets)
    if (dataset.path.starts_with(group) && dataset.path.ends_with("/" + name)) return &dataset;
  return nullptr;
}

/// Returns of_row(row) for each row of a dataset with one row per snapshot, over the steps of the snapshots.
template <class F> Trace over_snapshots(const RunData& run, const RunDataset* dataset, F&& of_row) {
  Trace trace;
  if (!dataset || dataset->shape.size() != 2) return trace;
  const std::vector<double>& steps = run.column(dataset->path.substr(0, dataset->path.rfind('/')) + "/snapshot");
  const std::size_t width = dataset->shape[1];
  for (std::size_t row = 0; row < std::min<std::size_t>(dataset->shape[0], steps.size()); ++row) {
    const auto begin = dataset->values.begin() + std::ptrdiff_t(row * width);
    trace.x.push_back(Index(steps[row]));
    trace.y.push_back(of_row(std::vector<double>(begin, begin + std::ptrdiff_t(width))));
  }
  return trace;
}

template <double Statistics::*part> Trace singular_value(const RunData& run) {
  return over_snapshots(run, below(run, "/spectrum/", "singular_values"),
                        [](const std::vector<double>& values) { return statistics_of(values).*part; });
}

Trace orthogonality_drift(const RunData& run) {
  Trace trace = over_snapshots(run, below(run, "/orthogonality/", "defect_fro"),
                               [](const std::vector<double>& defects) { return defects[0]; });
  const double first = trace.y.empty() ? nothing : trace.y.front();
  for (double& defect : trace.y) defect /= first;
  return trace;
}

/// ‖∂L/∂h_t‖ of the first layer at the last snapshot. L is the loss of the last step or, without that, the whole loss.
Trace gradients_through_time(const RunData& run) {
  Trace trace;
  for (const char* name : {"last_step_grad_norm", "hidden_grad_norm"}) {
    const RunDataset* norms = below(run, "/gradient", name);
    if (!norms || norms->shape.size() != 2 || norms->shape[0] == 0) continue;
    const std::size_t steps = norms->shape[1];
    for (std::size_t t = 0; t < steps; ++t)
      if (const double norm = norms->values[norms->values.size() - steps + t]; !std::isnan(norm))
        trace.x.push_back(Index(t + 1)), trace.y.push_back(norm);
    if (!trace.y.empty()) break;
  }
  return trace;
}

Trace condition_number(const RunData& run) {
  return over_snapshots(run, below(run, "/spectrum/", "singular_values"), [](const std::vector<double>& values) {
    const Statistics statistics = statistics_of(values);
    return statistics.least > 0 ? statistics.largest / statistics.least : nothing;
  });
}

Trace spectral_radius(const RunData& run) {
  return over_snapshots(run, below(run, "/spectrum/", "eigenvalue_modulus"),
                        [](const std::vector<double>& moduli) { return statistics_of(moduli).largest; });
}

Trace slope(const RunData& run) {
  return over_snapshots(run, run.find("/blocks/activation_slope/values"),
                        [](const std::vector<double>& slopes) { return statistics_of(slopes).mean; });
}

double at_the_end(const Trace& trace) { return last_number(trace.y); }
double first_over_last(const Trace& trace) { return trace.y.empty() ? nothing : trace.y.front() / trace.y.back(); }

/// A metric that is computed from a group of the result file instead of measured by a task.
struct Quantity {
  const char *metric, *group;
  Trace (*trace)(const RunData& run);
  double (*value)(const Trace& trace) = at_the_end;
};
constexpr Quantity quantities[] = {
    {"largest_singular_value", "/spectrum", singular_value<&Statistics::largest>},
    {"smallest_singular_value", "/spectrum", singular_value<&Statistics::least>},
    {"mean_singular_value", "/spectrum", singular_value<&Statistics::mean>},
    {"condition_number", "/spectrum", condition_number},
    {"spectral_radius", "/spectrum", spectral_radius},
    {"orthogonality_drift", "/orthogonality", orthogonality_drift},
    {"gradient_ratio", "/gradient", gradients_through_time, first_over_last},
    {"slope", "/blocks", slope},
};

const Quantity* quantity(const std::string& metric) {
  const auto found = std::ranges::find(quantities, metric, &Quantity::metric);
  return found == std::end(quantities) ? nullptr : found;
}

/// The best value so far or, for the kind validation, that of the evaluation which selected the network.
double validation_value(const RunData& run, const PublishedRow& row) {
  const std::vector<double>& values = run.column("/epochs/valid_" + row.metric);
  const Statistics statistics = statistics_of(values);
  const double best = row.higher_is_better() ? statistics.largest : statistics.least;
  return row.measured_as == "validation" ? at_best(run, values).value_or(best) : best;
}

bool is_of_test(const PublishedRow& row) { return row.measured_as == "test" || row.measured_as == "best test"; }

double value_of(const RunData& run, const PublishedRow& row, const Trace& trace) {
  if (const Quantity* found = quantity(row.metric)) return found->value(trace);
  return is_of_test(row) ? last_number(run.column("/final/test_" + row.metric)) : validation_value(run, row);
}

bool has_metric(const RunData& run, const PublishedRow& row, const Trace& trace) {
  if (quantity(row.metric)) return !trace.y.empty();
  return !run.column((is_of_test(row) ? "/final/test_" : "/epochs/valid_") + row.metric).empty();
}

Trace trace_of(const RunData& run, const PublishedRow& row) {
  if (const Quantity* found = quantity(row.metric)) return found->trace(run);
  const std::vector<double>&values = run.column("/epochs/valid_" + row.metric), &steps = run.column("/epochs/step");
  Trace trace;
  for (std::size_t i = 0; i < std::min(values.size(), steps.size()); ++i)
    trace.x.push_back(Index(steps[i])), trace.y.push_back(values[i]);
  return trace;
}

/// Returns all points if there are few, else every k-th and the last. Infinity becomes NaN, because JSON lacks it.
Trace thinned(const Trace& whole) {
  constexpr std::size_t most = 1000;
  const std::size_t stride = (whole.x.size() + most - 1) / most;
  Trace trace;
  for (std::size_t i = 0; i < whole.x.size(); ++i)
    if (i % stride == 0 || i + 1 == whole.x.size()) {
      trace.x.push_back(whole.x[i]);
      trace.y.push_back(std::isfinite(whole.y[i]) ? std::atof(fmt::format("{:.6g}", whole.y[i]).c_str()) : nothing);
    }
  return trace;
}

}  // namespace

std::vector<std::string> groups_for(const PublishedRow& row) {
  const Quantity* found = quantity(row.metric);
  return found ? std::vector<std::string>{found->group} : std::vector<std::string>{"/epochs", "/final"};
}

bool is_best_of_trace(const PublishedRow& row) {
  return row.kind == "curve" && !quantity(row.metric) && !is_of_test(row) && row.measured_as != "validation";
}

void measure(const RunData& run, const PublishedRow& row, Measurement& measurement) {
  measurement.state = run.status.state;
  measurement.run = run.path;
  measurement.step = run.committed_step;
  measurement.cpu_seconds = run.status.cpu_seconds;
  const std::string *commit = run.header.find_provenance("git_commit"),
                    *dirty = run.header.find_provenance("git_dirty");
  measurement.commit = (commit ? commit->substr(0, 10) : "") + (dirty && *dirty == "yes" ? "+" : "");
  const Trace trace = trace_of(run, row);
  measurement.value = value_of(run, row, trace);
  if (measurement.state == "finished" && !has_metric(run, row, trace))
    throw Error(
        fmt::format("{}: the row '{}' needs {}, of which the finished run {} has none: correct `metric` or "
                    "what the experiment records",
                    row.where.text(), row.row, row.metric, run.path.string()));
  if (row.kind == "curve") measurement.trace = thinned(trace);
}

nlohmann::ordered_json json_of(const Measurement& measurement) {
  nlohmann::ordered_json json = {{"seed", measurement.seed},
                                 {"state", measurement.state},
                                 {"value", measurement.value},
                                 {"share", measurement.share},
                                 {"length", measurement.length},
                                 {"step", measurement.step},
                                 {"cpu_seconds", measurement.cpu_seconds},
                                 {"commit", measurement.commit},
                                 {"settings", measurement.settings}};
  if (!measurement.trace.x.empty()) json["x"] = measurement.trace.x, json["y"] = measurement.trace.y;
  return json;
}

Measurement measurement_from(const nlohmann::json& json) {
  const auto number = [&](const char* key) { return json.at(key).is_null() ? nothing : json.at(key).get<double>(); };
  Measurement measurement{.seed = json.at("seed"),
                          .state = json.at("state"),
                          .value = number("value"),
                          .share = number("share"),
                          .length = json.value("length", Index(0)),
                          .step = json.at("step"),
                          .cpu_seconds = number("cpu_seconds"),
                          .commit = json.at("commit"),
                          .settings = json.at("settings")};
  if (json.contains("x")) {
    measurement.trace.x = json.at("x").get<std::vector<Index>>();
    for (const nlohmann::json& y : json.at("y")) measurement.trace.y.push_back(y.is_null() ? nothing : y.get<double>());
    measurement.trace.y.resize(measurement.trace.x.size(), nothing);
  }
  return measurement;
}

}  // namespace stiefel
