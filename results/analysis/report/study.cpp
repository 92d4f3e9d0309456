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
std::map<std::string, std::string> short_names(const std::vector<std::string>& keys, const Labels& labels) {
  std::map<std::string, std::string> names;
  for (const std::string& key : keys) {
    const auto last = [](const std::string& path) { return path.substr(path.rfind('.') + 1); };
    const bool alone = std::count_if(keys.begin(), keys.end(),
                                     [&](const std::string& other) { return last(other) == last(key); }) == 1;
    names[key] = labels.key(key, alone ? last(key) : key);
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
  if (study.groups.size() <= most_groups || study.metric.better == Better::unknown) return;
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

std::string label_of(const RunData& run, const std::vector<std::string>& keys, const Labels& labels) {
  const auto names = short_names(keys, labels);
  std::string label;
  for (const std::string& key : keys) {
    if (key != "id" && key != "state" && !run.configuration.contains(key)) continue;
    const std::string value = value_of(run, key);
    const bool alone = key.ends_with(".plugin") || labels.has(key, value);
    label += (label.empty() ? "" : ", ") + (alone ? "" : names.at(key) + "=") + labels.value(key, value);
  }
  if (label.empty())
    for (const std::string& key : keys) label += (label.empty() ? "without " : " and ") + names.at(key);
  return shortened(label.empty() ? run.header.title : label, longest_title);
}

std::vector<std::string> values_of(const RunData& run, const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  for (const std::string& key : keys) values.push_back(value_of(run, key));
  return values;
}

bool come_before(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), comes_before);
}

Design::Design(const std::vector<Group>& groups, const std::vector<std::string>& keys, const Labels& names) {
  const auto means = [&](std::vector<std::string> of) {
    std::map<std::vector<std::string>, std::string, decltype(&come_before)> labels(come_before);
    for (const Group& group : groups)
      labels.emplace(values_of(group.runs.front(), of), label_of(group.runs.front(), of, names));
    Means made{std::move(of), {}, {}};
    for (const auto& [values, label] : labels) made.values.push_back(values), made.labels.push_back(label);
    return made;
  };
  std::vector<Means> found;
  std::vector<std::string> others;
  for (const std::string& key : keys) {
    Means one = means({key});
    if (one.values.size() == groups.size()) return;
    if (one.values.size() == 1) continue;
    if (found.size() < 2 && others.empty() && std::ssize(one.values) <= (found.empty() ? hues : dashes))
      found.push_back(std::move(one));
    else
      others.push_back(key);
  }
  found.resize(std::max<std::size_t>(found.size(), found.empty() ? 0 : 2));
  if (found.empty()) return;
  found.push_back(means(others));
  if (found[2].values.size() > most_panels) return;
  for (std::size_t i = 0; i < found[0].labels.size(); ++i) legend_.push_back({found[0].labels[i], {int(i)}});
  for (std::size_t i = 0; i < found[1].labels.size(); ++i) legend_.push_back({found[1].labels[i], {-1, int(i)}});
  if (!others.empty()) panels_ = found[2].labels;
  means_ = std::move(found);
}

Style Design::style(const RunData& run, std::size_t number, const std::string& without) const {
  if (means_.empty()) return nth_style(int(number));
  const auto part = [&](const Means& means) {
    if (std::ranges::find(means.keys, without) != means.keys.end()) return 0;
    const auto found = std::ranges::find(means.values, values_of(run, means.keys));
    return found == means.values.end() ? 0 : int(found - means.values.begin());
  };
  return {part(means_[0]), part(means_[1]), part(means_[2])};
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
  std::vector<std::string> labeled = study.keys;
  labeled.insert(labeled.end(), against_.begin(), against_.end());
  study.labels = Labels(labels_, labeled, compared);
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
    study.groups.back().label = label_of(study.groups.back().runs.front(), study.keys, study.labels);
  }
  study.unreadable = std::move(unreadable_);
  put_in_order(study);
  study.design = Design(study.groups, study.keys, study.labels);
  for (std::size_t i = 0; i < study.groups.size(); ++i)
    study.groups[i].style = study.design.style(study.groups[i].runs.front(), i);
  if (study.shown().size() < study.groups.size())
    study.doubts.push_back(
        fmt::format("figures show {} of {} groups; choose with --where", study.shown().size(), study.groups.size()));
  return study;
}

}  // namespace stiefel::report
