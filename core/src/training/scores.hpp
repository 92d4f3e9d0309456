// What an evaluation finds on a split.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include <stiefel/task.hpp>

#include "config/experiment.hpp"

namespace stiefel {

struct Scores {
  std::vector<double> values;                  // loss, then the metrics; empty: not evaluated
  std::vector<std::vector<double>> by_step;    // of each metric that has one, the value at each step
  std::vector<std::vector<double>> by_length;  // the values at each of record.lengths

  bool empty() const { return values.empty(); }
};

/// What an evaluation finds besides the loss: the metrics of the task, and lyapunov_max, lyapunov_median and lyapunov_min
/// with record.analysis.
template <class S> std::vector<Metric> measured(const Experiment& experiment, const Task<S>& task) {
  std::vector<Metric> metrics = task.metrics();
  if (!experiment.record.analysis.empty())
    for (const char* name : {"lyapunov_max", "lyapunov_median", "lyapunov_min"})
      metrics.push_back({.name = name, .units = "1/step"});
  return metrics;
}

/// A number of an evaluation, by which the best network can be chosen.
struct Quantity {
  std::string name;
  bool higher_is_better = false;
};

/// Loss and metrics of a task, and the same at each of record.lengths: accuracy_at_256.
inline std::vector<Quantity> quantities(const std::vector<Metric>& metrics, const std::vector<Index>& lengths) {
  std::vector<Quantity> all{{"loss"}};
  for (const Metric& metric : metrics) all.push_back({metric.name, metric.higher_is_better});
  const std::size_t own = all.size();
  for (const Index length : lengths)
    for (std::size_t i = 0; i < own; ++i)
      all.push_back({fmt::format("{}_at_{}", all[i].name, length), all[i].higher_is_better});
  return all;
}

/// Their values, in the same order.
inline std::vector<double> values_of_quantities(const Scores& scores) {
  std::vector<double> all = scores.values;
  for (const std::vector<double>& values : scores.by_length) all.insert(all.end(), values.begin(), values.end());
  return all;
}

}  // namespace stiefel
