// Compares runs: the spread of the metric, and the metric against a key of the configuration.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>

#include <stiefel/error.hpp>
#include "base/number_from.hpp"
#include "base/printable.hpp"

#include "results/analysis/report/encoding.hpp"
#include "results/analysis/report/figures.hpp"
#include "results/analysis/report/spread.hpp"

namespace stiefel::report {
namespace {

constexpr std::size_t most_keys = 4;

std::vector<Figure> boxes(const Study& study) {
  if (study.runs().size() < 2) return {};
  Figure figure{
      "boxes",
      fmt::format("Spread of {} over runs", study.metric.label),
      fmt::format("{} of each run and the median, for: {}.", capitalised(study.metric.label), labels_text(study)),
      fmt::format("{} of each finished run (points), median (bar)", study.metric.is_path() ? "Last value"
                                                                    : study.metric.name == "train_loss"
                                                                        ? "Best or last evaluation"
                                                                        : "Best evaluation"),
      {study.metric.label, study.metric.units},
      {"", "1"}};
  double least = INFINITY, most = 0;
  bool few = false, many = false;
  for (const Group& group : study.shown()) {
    const double row = double(figure.y.names.size());
    const Style style{group.style.hue};
    figure.y.names.push_back(group.label);
    const std::vector<double> values = values_of(group, study.metric);
    if (values.empty()) continue;
    Series box{group.label, style, Form::box, {}, {row}},
        points{group.label, style, Form::points, values, std::vector(values.size(), row)};
    if (values.size() < least_for_quartiles)
      box.x = {quantile(values, 0.5)}, few = true;
    else
      for (const double share : {0.09, 0.25, 0.5, 0.75, 0.91}) box.x.push_back(quantile(values, share)), many = true;
    box.in_legend = points.in_legend = false;
    least = std::min(least, *std::min_element(values.begin(), values.end()));
    most = std::max(most, *std::max_element(values.begin(), values.end()));
    figure.series.push_back(box);
    figure.series.push_back(points);
  }
  if (figure.series.empty()) return {};
  if (many) figure.caption += ", 25 to 75% (box), 9 to 91% (whiskers)";
  figure.caption += many && few ? fmt::format("; boxes of {} runs or more.", least_for_quartiles) : ".";
  figure.x.logarithmic = least > 0 && most > 10 * least;
  return {figure};
}

std::optional<double> finite_number(const std::string& text) {
  const std::optional<double> value = number_from<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

struct Alike {
  std::string label;
  Style style;
  std::vector<const RunData*> runs;
};

/// Groups of runs that differ only in the key and the seed.
std::vector<Alike> alike_without(const Study& study, const std::string& key) {
  std::vector<std::string> others = study.keys;
  std::erase(others, key);
  std::map<std::vector<std::string>, std::vector<const RunData*>, decltype(&come_before)> alike(come_before);
  for (const RunData* run : study.runs()) alike[values_of(*run, others)].push_back(run);
  std::vector<Alike> found;
  for (const auto& [values, runs] : alike)
    found.push_back(
        {label_of(*runs.front(), others, study.labels), study.design.style(*runs.front(), found.size(), key), runs});
  return found;
}

/// Whether some runs differ in the key and otherwise only in the seed.
bool varies_alone(const Study& study, const std::string& key) {
  for (const Alike& alike : alike_without(study, key))
    for (const RunData* run : alike.runs)
      if (value_of(*run, key) != value_of(*alike.runs.front(), key)) return true;
  return false;
}

/// Keys whose values, where a run has one, are numbers, and that differ between runs that are otherwise the same. At
/// most most_keys.
std::vector<std::string> numeric_keys(const Study& study) {
  std::vector<std::string> keys;
  const auto runs = study.runs();
  for (const std::string& key : study.keys) {
    std::map<double, int> values;
    const bool numeric = std::all_of(runs.begin(), runs.end(), [&](const RunData* run) {
      const auto found = run->configuration.find(key);
      if (found == run->configuration.end() || found->second.find(changed_to) != std::string::npos) return true;
      const auto value = finite_number(found->second);
      if (value) ++values[*value];
      return value.has_value();
    });
    if (numeric && values.size() > 1 && keys.size() < most_keys && varies_alone(study, key)) keys.push_back(key);
  }
  return keys;
}

void add_against(Figure& figure, const Alike& alike, const std::string& key, const Metric& metric) {
  std::vector<Curve> single;
  Series points{alike.label + ", runs", alike.style, Form::points, {}, {}};
  points.in_legend = false;
  for (const RunData* run : alike.runs) {
    const auto x = finite_number(value_of(*run, key));
    const double y = metric.of(*run);
    if (!x || !std::isfinite(y) || run->status.state != "finished") continue;
    points.x.push_back(*x), points.y.push_back(y);
    single.push_back({{*x}, {y}, {}, {}});
  }
  if (single.empty()) return;
  figure.series.push_back(series_of(alike.label, alike.style, over_seeds(single)));
  figure.series.push_back(std::move(points));
}

std::vector<Figure> against_key(const Study& study, const std::string& key) {
  const std::string name = study.labels.key(key, key);
  Figure figure{"against_" + identifier(key),
                fmt::format("{} against {}", capitalised(study.metric.label), name),
                fmt::format("{} of all finished runs against {}, with the median of the runs that are otherwise alike.",
                            study.metric.label, name),
                "",
                {name},
                {study.metric.label, study.metric.units}};
  std::vector<Alike> groups = alike_without(study, key);
  if (groups.size() > most_groups) {
    figure.caption += fmt::format(" {} of {} lines are drawn.", most_groups, groups.size());
    groups.resize(most_groups);
  }
  for (const Alike& alike : groups) add_against(figure, alike, key, study.metric);
  if (figure.series.empty()) return {};
  figure.caption = "Finished runs. " + spread_caption(figure) + figure.caption;
  const auto wide = [&](std::vector<double> Series::*values, double ratio) {
    double least = INFINITY, most = 0;
    for (const Series& series : figure.series)
      for (const double value : series.*values) least = std::min(least, value), most = std::max(most, value);
    return least > 0 && most >= ratio * least;
  };
  figure.x.logarithmic = wide(&Series::x, 10);
  figure.y.logarithmic = wide(&Series::y, 30);
  return {figure};
}

/// The row of a dataset with an axis `x` at the run's best evaluation, or at its last one.
std::optional<Curve> row_at_best(const RunData& run, const std::string& x, const std::string& y) {
  const RunDataset* dataset = run.find(y);
  const std::vector<double>& at = run.column(x);
  if (!dataset || dataset->shape.size() != 2 || dataset->shape[0] == 0 || dataset->shape[1] != at.size()) return {};
  std::vector<double> rows(dataset->shape[0]);
  std::iota(rows.begin(), rows.end(), 0.);
  const double* row = &dataset->values[std::size_t(at_best(run, rows).value_or(rows.back())) * at.size()];
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < at.size(); ++i) points.emplace_back(at[i], row[i]);
  std::ranges::sort(points);
  Curve curve;
  for (const auto& [place, value] : points) curve.x.push_back(place), curve.median.push_back(value);
  return curve;
}

/// Validation metrics at the lengths of record.lengths, and at each step of a sequence.
std::vector<Figure> over_axis(const Study& study, const std::string& ending, const std::string& axis,
                              const std::string& where, const std::string& label) {
  std::vector<Figure> figures;
  for (const std::string& name : names_below(study, "/epochs")) {
    if (!name.starts_with("valid_") || !name.ends_with(ending)) continue;
    const std::string metric = readable(name.substr(0, name.size() - ending.size()));
    Figure figure{identifier(name),
                  fmt::format("{} {}", capitalised(metric), where),
                  fmt::format("{} {} with the best network of: {}.", capitalised(metric), where, labels_text(study)),
                  "",
                  {label},
                  {metric}};
    for (const Group& group : study.shown()) {
      std::vector<Curve> curves;
      for (const RunData& run : group.runs)
        if (std::optional<Curve> curve = row_at_best(run, "/epochs/" + axis, "/epochs/" + name))
          curves.push_back(std::move(*curve));
      if (!curves.empty()) add_runs(figure, group.label, group.style, curves);
    }
    if (figure.series.empty()) continue;
    figure.caption = "Best network of each run. " + spread_caption(figure, false);
    figure.y.logarithmic = spans_decades(figure);
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace

std::vector<Figure> comparison_figures(const Study& study, std::vector<std::string> against) {
  std::vector<Figure> figures = boxes(study);
  std::ranges::move(over_axis(study, "_by_length", "length", "at other lengths", "length of the task"),
                    std::back_inserter(figures));
  std::ranges::move(over_axis(study, "_by_step", "t", "at each step", "step of the sequence"),
                    std::back_inserter(figures));
  const bool asked = !against.empty();
  if (!asked) against = numeric_keys(study);
  for (const std::string& key : against) {
    std::vector<Figure> made = against_key(study, key);
    if (asked && made.empty())
      throw Error(fmt::format("--against {}: no finished run has a number there and a {}", key, study.metric.label));
    std::move(made.begin(), made.end(), std::back_inserter(figures));
  }
  return figures;
}

}  // namespace stiefel::report
