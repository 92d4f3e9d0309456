#include "results/analysis/report/study.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include <stiefel/error.hpp>

#include "results/analysis/report/encoding.hpp"
#include "results/analysis/report/spread.hpp"
#include "results/analysis/report/thin.hpp"

namespace stiefel::report {
namespace {

/// The metric that a path names. Throws Error if no run has such a dataset.
Metric metric_by_path(const std::vector<RunData>& runs, const std::string& name) {
  Metric metric{name, readable(name)};
  std::set<std::string> known;
  bool found = false;
  for (const RunData& run : runs)
    for (const RunDataset& dataset : run.datasets) {
      if (!dataset.is_column()) continue;
      known.insert(dataset.path.substr(1));
      if (dataset.path != metric.path()) continue;
      metric.units = dataset.units;
      metric.better = direction(dataset);
      found = true;
    }
  if (!found) refuse_metric(name, known);
  return metric;
}

Metric metric_of(const std::vector<RunData>& runs, const Comparison& comparison) {
  Metric metric{comparison.metric, comparison.metric.empty() ? "metric" : readable(comparison.metric)};
  metric.better = comparison.better;
  for (const RunData& run : runs)
    if (const RunDataset* dataset = run.find(metric.path())) metric.units = dataset->units;
  return metric;
}

/// Shortens keys to the part of their paths that distinguishes them.
std::map<std::string, std::string> short_names(const std::vector<std::string>& keys) {
  std::map<std::string, std::string> names;
  for (const std::string& key : keys) {
    const auto last = [](const std::string& path) { return path.substr(path.rfind('.') + 1); };
    const bool alone = std::count_if(keys.begin(), keys.end(),
                                     [&](const std::string& other) { return last(other) == last(key); }) == 1;
    names[key] = alone ? last(key) : key;
  }
  return names;
}

void put_in_order(Study& study) {
  const double sign = study.metric.better == Better::higher ? -1 : 1;
  const auto rank = [&](const Group& group) {
    const double median = statistics_of(values_of(group, study.metric)).median;
    return std::isnan(median) ? INFINITY : sign * median;
  };
  for (Group& group : study.groups)
    std::stable_sort(group.runs.begin(), group.runs.end(), [](const RunData& a, const RunData& b) {
      return comes_before(value_of(a, "seed"), value_of(b, "seed"));
    });
  if (study.groups.size() <= colours || study.metric.better == Better::unknown) return;
  std::vector<std::pair<double, Group>> ranked;
  for (Group& group : study.groups) ranked.emplace_back(rank(group), std::move(group));
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < ranked.size(); ++i) study.groups[i] = std::move(ranked[i].second);
}

}  // namespace

std::string readable(std::string name) {
  name = name.substr(name.rfind('/') + 1);
  for (const auto& [begin, whole] : {std::pair("valid_", "validation "), std::pair("train_", "training ")})
    if (name.starts_with(begin)) name.replace(0, std::string(begin).size(), whole);
  std::replace(name.begin(), name.end(), '_', ' ');
  return shortened(name, longest_title);
}

double baseline_of(const Group& group) {
  for (const RunData& run : group.runs)
    if (std::isfinite(run.header.baseline)) return run.header.baseline;
  return std::nan("");
}

double Metric::of(const RunData& run) const {
  if (!is_path()) return compared_run(run, {name, {}}).value;
  return last_number(rows_of(run, path()));
}

std::vector<const RunData*> Study::runs() const {
  std::vector<const RunData*> all;
  for (const Group& group : groups)
    for (const RunData& run : group.runs) all.push_back(&run);
  return all;
}

std::string value_of(const RunData& run, const std::string& key) {
  if (key == "id") return run.header.run_id;
  if (key == "state") return run.status.state;
  const auto found = run.configuration.find(key);
  return found == run.configuration.end() ? "–" : found->second;
}

std::string label_of(const RunData& run, const std::vector<std::string>& keys) {
  const auto names = short_names(keys);
  std::string label;
  for (const std::string& key : keys) {
    if (key != "id" && key != "state" && !run.configuration.contains(key)) continue;
    label += (label.empty() ? "" : ", ") + (key.ends_with(".plugin") ? "" : names.at(key) + "=") + value_of(run, key);
  }
  return shortened(label.empty() ? run.header.title : label, longest_title);
}

RunRequest report_request(const std::string& metric) {
  RunRequest request;
  request.paths = {"/steps/step", "/steps/loss", "/steps/grad_norm", "/epochs", "/final",
                   "/outcome",    "/spectrum",   "/orthogonality",   "/timing", "/gradient"};
  if (const std::string path = path_of_metric(metric); !path.empty()) request.paths.push_back(path);
  request.except = {"hidden_norm", "singular_values", "eigenvalue_phase", "eigenvalue_modulus"};
  request.most_values = 1 << 26;
  request.memory = std::uint64_t(2) << 30;
  return request;
}

void StudyBuilder::take(RunData&& run) {
  if (!run.unreadable.empty()) return unreadable_.push_back(std::move(run));
  thin(run);
  runs_.push_back(std::move(run));
}

Study StudyBuilder::finish() {
  if (runs_.empty() && unreadable_.empty())
    throw Error("there are no runs in the given folders; runs are in runs/NAME/ID");
  if (runs_.empty())
    throw Error(fmt::format("{}: {}", unreadable_.front().path.string(), unreadable_.front().unreadable),
                Exit::damaged);
  const bool by_path = !path_of_metric(metric_).empty();
  std::vector<ComparedRun> compared;
  for (const RunData& run : runs_) compared.push_back(compared_run(run, {by_path ? "" : metric_, {}}));
  keep_where(compared, where_);
  std::erase_if(runs_, [&](const RunData& run) {
    return std::ranges::find(compared, run.path, &ComparedRun::path) == compared.end();
  });
  if (by_path)
    for (ComparedRun& run : compared) run.metric.clear();
  const Comparison comparison = compare(compared, keys_.empty() ? differing_keys(compared) : keys_);
  Study study;
  study.keys = comparison.keys;
  study.doubts = doubts(compared, comparison);
  study.metric = by_path ? metric_by_path(runs_, metric_) : metric_of(runs_, comparison);
  if (!metric_.empty() && study.metric.name.empty()) {
    std::set<std::string> known;
    for (const RunData& run : runs_)
      for (const RunDataset& dataset : run.datasets)
        if (dataset.path.starts_with("/epochs/")) known.insert(dataset.path.substr(std::string("/epochs/").size()));
    refuse_metric(metric_, known);
  }
  for (const ComparedGroup& group : comparison.groups) {
    study.groups.emplace_back();
    for (const ComparedRun* run : group.runs)
      study.groups.back().runs.push_back(std::move(runs_[std::size_t(run - compared.data())]));
    study.groups.back().parameters = group.parameters;
    study.groups.back().label = label_of(study.groups.back().runs.front(), study.keys);
  }
  study.unreadable = std::move(unreadable_);
  put_in_order(study);
  if (study.shown().size() < study.groups.size())
    study.doubts.push_back(
        fmt::format("figures show {} of {} groups; choose with --where", study.shown().size(), study.groups.size()));
  return study;
}

}  // namespace stiefel::report
