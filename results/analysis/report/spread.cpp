#include "results/analysis/report/spread.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace stiefel::report {

double quantile(std::vector<double> values, double share) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  const double at = share * double(values.size() - 1);
  const auto below = std::size_t(at);
  return std::lerp(values[below], values[std::min(below + 1, values.size() - 1)], at - double(below));
}

std::vector<double> rows_of(const RunData& run, const std::string& path) {
  const RunDataset* dataset = run.find(path);
  if (!dataset || dataset->is_text || dataset->shape.empty() || dataset->shape[0] == 0) return {};
  const std::size_t rows = dataset->shape[0], width = dataset->values.size() / rows;
  std::vector<double> first;
  for (std::size_t row = 0; width > 0 && row < rows; ++row) first.push_back(dataset->values[row * width]);
  return first;
}

Curve over_seeds(std::span<const Curve> curves) {
  std::map<double, std::vector<double>> at;
  for (const Curve& curve : curves)
    for (std::size_t i = 0; i < std::min(curve.x.size(), curve.median.size()); ++i)
      if (std::isfinite(curve.x[i]) && !std::isnan(curve.median[i])) at[curve.x[i]].push_back(curve.median[i]);
  const bool several = std::any_of(at.begin(), at.end(), [](const auto& place) { return place.second.size() > 1; });
  Curve curve;
  for (const auto& [x, values] : at) {
    curve.x.push_back(x);
    curve.median.push_back(quantile(values, 0.5));
    if (!several) continue;
    curve.low.push_back(quantile(values, 0.25));
    curve.high.push_back(quantile(values, 0.75));
  }
  return curve;
}

Curve over_seeds(const Group& group, const std::string& x, const std::string& y) {
  std::vector<Curve> curves;
  for (const RunData& run : group.runs) curves.push_back({rows_of(run, x), rows_of(run, y), {}, {}});
  return over_seeds(curves);
}

std::vector<double> values_of(const Group& group, const Metric& metric) {
  std::vector<double> values;
  for (const RunData& run : group.runs)
    if (const double value = metric.of(run); run.status.state == "finished" && !std::isnan(value))
      values.push_back(value);
  return values;
}

Series series_of(const std::string& label, int colour, Curve curve) {
  Series series{label, colour};
  series.x = std::move(curve.x), series.y = std::move(curve.median);
  series.low = std::move(curve.low), series.high = std::move(curve.high);
  return series;
}

}  // namespace stiefel::report
