/// Medians and quartiles, of values and of curves over seeds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/analysis/report/study.hpp"

namespace stiefel::report {

/// Quartiles of fewer values say little: figures show each value instead.
constexpr std::size_t least_for_quartiles = 5;

struct Curve {
  std::vector<double> x, median, low, high;  ///< 25 and 75%: NaN where there are too few values, or empty
};

/// The first value of each row of a dataset; empty when the run has none.
std::vector<double> rows_of(const RunData& run, const std::string& path);
/// A dataset over the step. A run that diverged before its first row has no number where it ended: it counts as one that
/// ends there.
Curve curve_of(const RunData& run, const std::string& x, const std::string& y);
/// Statistics at each x of any of the runs; of a group, up to where half of its runs have ended.
Curve over_seeds(const Group& group, const std::string& x, const std::string& y);
Curve over_seeds(std::span<const Curve> curves);
/// The metric's values in the finished runs of a group, without those that have none.
std::vector<double> values_of(const Group& group, const Metric& metric);

/// A line with its band.
Series series_of(const std::string& label, int colour, Curve curve);
/// The median of runs with its band, or below it each run when there are too few for quartiles.
void add_runs(Figure& figure, const std::string& label, int colour, const std::vector<Curve>& runs);
void add_runs(Figure& figure, const Group& group, int colour, const std::string& x, const std::string& y);
/// What lines, bands and points of runs are; empty when there are only lines. `ends`: whether they end where runs do.
std::string spread_caption(const Figure& figure, bool ends = true);

}  // namespace stiefel::report
