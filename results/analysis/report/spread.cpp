#include "results/analysis/report/spread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace stiefel::report {
namespace {

/// A run with more points than this is drawn as a line.
constexpr std::size_t most_points = 40;

/// Cuts off what only half of the runs or fewer reach, because a median of the remaining runs is another quantity.
void cut_where_most_end(Curve& middle, const std::vector<Curve>& runs) {
  std::vector<double> ends;
  for (const Curve& run : runs)
    if (!run.x.empty() && !run.median.empty()) ends.push_back(std::ranges::max(run.x));
  std::ranges::sort(ends, std::greater());
  const auto kept = std::size_t(std::ranges::upper_bound(middle.x, ends[ends.size() / 2]) - middle.x.begin());
  for (std::vector<double>* column : {&middle.x, &middle.median, &middle.low, &middle.high})
    column->resize(std::min(column->size(), kept));
}

}  // namespace

std::vector<double> rows_of(const RunData& run, const std::string& path) {
  const RunDataset* dataset = run.find(path);
  if (!dataset || dataset->is_text || dataset->shape.empty() || dataset->shape[0] == 0) return {};
  const std::size_t rows = dataset->shape[0], width = dataset->values.size() / rows;
  std::vector<double> first;
  for (std::size_t row = 0; width > 0 && row < rows; ++row) first.push_back(dataset->values[row * width]);
  return first;
}

Curve curve_of(const RunData& run, const std::string& x, const std::string& y) {
  Curve curve{rows_of(run, x), rows_of(run, y), {}, {}};
  if (curve.median.empty() && run.status.state == "diverged") {
    curve.x = {double(run.committed_step)};
    curve.median = {std::nan("")};
  }
  return curve;
}

std::vector<Curve> curves_of(const Group& group, const std::string& x, const std::string& y) {
  std::vector<Curve> curves;
  for (const RunData& run : group.runs) curves.push_back(curve_of(run, x, y));
  return curves;
}

Curve over_seeds(std::span<const Curve> curves) {
  std::map<double, std::vector<double>> at;
  for (const Curve& curve : curves)
    for (std::size_t i = 0; i < std::min(curve.x.size(), curve.median.size()); ++i)
      if (std::isfinite(curve.x[i]) && !std::isnan(curve.median[i])) at[curve.x[i]].push_back(curve.median[i]);
  const bool enough =
      std::any_of(at.begin(), at.end(), [](const auto& place) { return place.second.size() >= least_for_quartiles; });
  Curve curve;
  for (const auto& [x, values] : at) {
    curve.x.push_back(x);
    curve.median.push_back(quantile(values, 0.5));
    if (!enough) continue;
    const bool here = values.size() >= least_for_quartiles;
    curve.low.push_back(here ? quantile(values, 0.25) : std::nan(""));
    curve.high.push_back(here ? quantile(values, 0.75) : std::nan(""));
  }
  return curve;
}

Curve over_seeds(const Group& group, const std::string& x, const std::string& y) {
  const std::vector<Curve> curves = curves_of(group, x, y);
  Curve middle = over_seeds(curves);
  if (!middle.x.empty()) cut_where_most_end(middle, curves);
  return middle;
}

std::vector<double> values_of(const Group& group, const Metric& metric) {
  std::vector<double> values;
  for (const RunData& run : group.runs)
    if (const double value = metric.of(run); run.status.state == "finished" && !std::isnan(value))
      values.push_back(value);
  return values;
}

Series series_of(const std::string& label, const Style& style, Curve curve) {
  Series series{label, style};
  series.x = std::move(curve.x), series.y = std::move(curve.median);
  series.low = std::move(curve.low), series.high = std::move(curve.high);
  return series;
}

void add_runs(Figure& figure, const std::string& label, const Style& style, const std::vector<Curve>& runs) {
  Curve middle = over_seeds(runs);
  if (middle.x.empty()) return;
  cut_where_most_end(middle, runs);
  const auto has_values = [](const Curve& run) { return !run.x.empty() && !run.median.empty(); };
  if (middle.low.empty() && std::count_if(runs.begin(), runs.end(), has_values) > 1)
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Series one = series_of(fmt::format("{}, run {}", label, i + 1), style, over_seeds({&runs[i], 1}));
      one.form = one.x.size() > most_points ? Form::run_line : Form::run_points;
      one.in_legend = middle.x.empty();
      if (!one.x.empty()) figure.series.push_back(std::move(one));
    }
  if (!middle.x.empty()) figure.series.push_back(series_of(label, style, std::move(middle)));
}

void add_runs(Figure& figure, const Group& group, const std::string& x, const std::string& y) {
  add_runs(figure, group.label, group.style, curves_of(group, x, y));
}

std::string spread_caption(const Figure& figure, bool ends) {
  const auto any = [&](auto&& is) { return std::any_of(figure.series.begin(), figure.series.end(), is); };
  const bool band = any([](const Series&series) { return !series.low.empty(); }),
             points = any([](const Series&s) { return s.form == Form::points || s.form == Form::run_points; }),
             lines = any([](const Series&series) { return series.form == Form::run_line; });
  if (!band && !points && !lines) return "";
  if (!any([](const Series& series) { return series.form == Form::line; }))
    return "Each run is shown; there is no median, because at least half of the runs ended too early.";
  const std::string several = fmt::format(", of {} runs or more", least_for_quartiles);
  return fmt::format("Line: median over seeds{}{}{}{}.", ends ? ", up to where half of the runs have ended" : "",
                     points ? "; points: each run" : "", lines ? "; thin lines: each run" : "",
                     band ? "; band: 25 to 75%" + (points || lines ? several : "") : "");
}

}  // namespace stiefel::report
