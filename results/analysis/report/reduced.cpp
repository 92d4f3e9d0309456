#include "results/analysis/report/reduced.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace stiefel::report {
namespace {

bool is_line(const Series& series) {
  return series.form == Form::line || series.form == Form::thin_line || series.form == Form::run_line;
}

/// The index in [begin, end) of the value that comes before all others, ignoring NaN; the last index if all are NaN.
template <typename Before>
std::size_t first_of(const std::vector<double>& values, std::size_t begin, std::size_t end, Before before) {
  std::size_t found = begin;
  for (std::size_t i = begin; i < end; ++i)
    if (std::isnan(values[found]) || before(values[i], values[found])) found = i;
  return found;
}

Series reduced(const Series& series, std::size_t stretches) {
  const std::size_t count = series.y.size();
  if (!is_line(series) || count <= 2 * stretches) return series;
  Series kept{series.label, series.style, series.form};
  kept.in_legend = series.in_legend;
  for (std::size_t k = 0; k < stretches; ++k) {
    const std::size_t begin = k * count / stretches, end = (k + 1) * count / stretches;
    std::set<std::size_t> rows{first_of(series.y, begin, end, std::less<>()),
                               first_of(series.y, begin, end, std::greater<>())};
    if (k == 0) rows.insert(0);
    if (end == count) rows.insert(count - 1);
    for (const std::size_t i : rows) {
      kept.x.push_back(series.x[i]), kept.y.push_back(series.y[i]);
      if (series.low.empty()) continue;
      kept.low.push_back(series.low[first_of(series.low, begin, end, std::less<>())]);
      kept.high.push_back(series.high[first_of(series.high, begin, end, std::greater<>())]);
    }
  }
  return kept;
}

}  // namespace

Figure reduced(const Figure& figure, std::size_t stretches) {
  Figure fewer = figure;
  for (Series& series : fewer.series) series = reduced(series, stretches);
  return fewer;
}

std::size_t longest_line(const Figure& figure) {
  std::size_t most = 0;
  for (const Series& series : figure.series)
    if (is_line(series)) most = std::max(most, series.y.size());
  return most;
}

}  // namespace stiefel::report
