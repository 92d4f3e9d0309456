// The values of metrics from the ratios that measure() adds to.
#pragma once

#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include <stiefel/task.hpp>

namespace stiefel {

/// How many ratios measure() gets.
inline std::size_t count_of_parts(const std::vector<Metric>& metrics) {
  return std::accumulate(metrics.begin(), metrics.end(), std::size_t(0),
                         [](std::size_t sum, const Metric& metric) { return sum + std::size_t(metric.parts); });
}

/// The value of each metric. `sums` are those of its parts over the split.
inline std::vector<double> metric_values(const std::vector<Metric>& metrics, std::span<const Ratio> sums) {
  std::vector<double> values;
  for (const Metric& metric : metrics) {
    const std::span<const Ratio> parts = sums.first(std::size_t(metric.parts));
    sums = sums.subspan(parts.size());
    const double mean = parts[0].sum / parts[0].weight;
    values.push_back(metric.value ? metric.value(parts) : metric.exponential ? std::exp(mean) : mean);
  }
  return values;
}

}  // namespace stiefel
