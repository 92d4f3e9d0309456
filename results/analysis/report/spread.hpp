/// Medians and quartiles over seeds, of values and of curves.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/analysis/report/study.hpp"

namespace stiefel::report {

/// Quartiles of fewer values say little, so figures show each value instead.
constexpr std::size_t least_for_quartiles = 5;

struct Curve {
  std::vector<double> x, median, low, high;  ///< 25 and 75%: NaN where there are too few values, or empty
};

/// The first value of each row of a dataset; empty if the run has none.
std::vector<double> rows_of(const RunData& run, const std::string& path);
/// The dataset `y` over the dataset `x`. A run that diverged before its first row has a NaN at its last step, so that
/// it counts as one that ends there.
Curve curve_of(const RunData& run, const std::string& x, const std::string& y);
std::vector<Curve> curves_of(const Group& group, const std::string& x, const std::string& y);
/// Statistics at every x of the runs. For a group, only up to where half of its runs have ended.
Curve over_seeds(const Group& group, const std::string& x, const std::string& y);
Curve over_seeds(std::span<const Curve> curves);
/// The metric's values in the finished runs of a group. Runs without one are left out.
std::vector<double> values_of(const Group& group, const Metric& metric);

/// A line with its band.
Series series_of(const std::string& label, const Style& style, Curve curve);
/// Adds the median of the runs with its band. If there are too few runs for quartiles, adds each run below it instead
/// of the band.
void add_runs(Figure& figure, const std::string& label, const Style& style, const std::vector<Curve>& runs);
void add_runs(Figure& figure, const Group& group, const std::string& x, const std::string& y);
/// A caption that explains lines, bands and points of runs; empty if there are only lines. `ends` is whether lines end
/// where half of the runs have.
std::string spread_caption(const Figure& figure, bool ends = true);

}  // namespace stiefel::report
