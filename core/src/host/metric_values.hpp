// The values of metrics from the ratios that measure() adds to.
#pragma once

#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include <stiefel/task.hpp>

namespace stiefel {

/// How many ratios the metrics have over a split.
inline std::size_t count_of_parts(const std::vector<Metric>& metrics) {
  return std::accumulate(metrics.begin(), metrics.end(), std::size_t(0),
                         [](std::size_t sum, const Metric& metric) { return sum + std::size_t(metric.parts); });
}

/// How many of them measure() gets for a metric, or for all, when it measures so many sequences.
inline std::size_t count_of_ratios(const Metric& metric, Index sequences) {
  return std::size_t(metric.of_sequence ? sequences : metric.parts);
}
inline std::size_t count_of_ratios(const std::vector<Metric>& metrics, Index sequences) {
  std::size_t sum = 0;
  for (const Metric& metric : metrics) sum += count_of_ratios(metric, sequences);
  return sum;
}

/// The ratios over a split, from those that measure() has added to for all of so many sequences.
inline std::vector<Ratio> sums_of_sequences(const std::vector<Metric>& metrics, std::span<const Ratio> measured,
                                            Index sequences) {
  std::vector<Ratio> sums;
  for (const Metric& metric : metrics) {
    const auto own = measured.first(count_of_ratios(metric, sequences));
    measured = measured.subspan(own.size());
    if (!metric.of_sequence) {
      sums.insert(sums.end(), own.begin(), own.end());
      continue;
    }
    Ratio& sum = sums.emplace_back();
    for (const Ratio& sequence : own) {
      const Ratio added = metric.of_sequence(sequence);
      sum.sum += added.sum, sum.weight += added.weight;
    }
  }
  return sums;
}

/// The value of each metric. `sums` are those of its parts over the split.
inline std::vector<double> metric_values(const std::vector<Metric>& metrics, std::span<const Ratio> sums) {
  std::vector<double> values;
  for (const Metric& metric : metrics) {
    const std::span<const Ratio> parts = sums.first(std::size_t(metric.parts));
    sums = sums.subspan(parts.size());
    Ratio whole;
    for (const Ratio& part : parts) whole.sum += part.sum, whole.weight += part.weight;
    const double mean = whole.sum / whole.weight;
    values.push_back(metric.value ? metric.value(parts) : metric.exponential ? std::exp(mean) : mean);
  }
  return values;
}

}  // namespace stiefel
