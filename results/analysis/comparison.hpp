/// Compares runs: the result of each, and means, spreads and quantiles over those that differ only in the seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <stiefel/export.hpp>

#include "results/analysis/run_data.hpp"

namespace stiefel {

/// Which of two values of a quantity is better.
enum class Better { unknown, lower, higher };

/// The quantity to compare.
struct ComparedQuantity {
  std::string metric;           ///< "valid_loss", "test_accuracy", …; empty: what the run selects its best model by
  std::optional<double> reach;  ///< a value that the metric should reach
  std::string at = {};          ///< a length of record.lengths at which the metric is taken; empty: that of training
};

/// One run of a comparison; missing numbers are NaN.
struct STIEFEL_API ComparedRun {
  std::filesystem::path path;
  std::string id, state;
  std::map<std::string, std::string> configuration;
  std::int64_t parameters = 0;  ///< 0: unknown
  std::string metric;           ///< its name in the file; empty while there is none
  Better better = Better::unknown;
  double value = std::numeric_limits<double>::quiet_NaN();  ///< at the best evaluation
  double reached_step = value,
         reached_seconds = value;   ///< first evaluation at which the metric reaches the requested value
  std::set<std::string> reachable;  ///< metrics with values at evaluations and a direction, if a value is requested
  std::vector<PluginRow> plugins;
  std::vector<DatasetRow> data;

  bool finished() const { return state == "finished"; }
  /// The value of a key of the configuration, or of `name`, `id` and `state`; "-" if there is no such key.
  std::string text(const std::string& key) const;
};

/// Throws Error: if the metric is among the `known` names of columns, that no run has a value of it yet, else that
/// there is no such metric, with names to choose from.
[[noreturn]] STIEFEL_API void refuse_metric(const std::string& metric, const std::set<std::string>& known);

/// The direction in a column's description, "lower is better" or "higher is better".
STIEFEL_API Better described_direction(const std::string& description);
/// Whether lower or higher values of a column are better, by its description. Without one, lower losses are better.
STIEFEL_API Better direction(const RunDataset& column);

// In compared_run.cpp:

/// The last value; NaN if there is none.
STIEFEL_API double last_number(const std::vector<double>& values);
/// The value of a column of /epochs at the best evaluation; nothing if none was best.
STIEFEL_API std::optional<double> at_best(const RunData& run, const std::vector<double>& values);
/// The first row that is at least as good as the threshold; the number of rows if there is none.
STIEFEL_API std::size_t row_reaching(const std::vector<double>& values, double threshold, Better better);

/// The dataset that a metric such as spectrum/recurrent/singular_max names; empty for a name without a group.
STIEFEL_API std::string path_of_metric(const std::string& metric);
/// The request that reads what a comparison by this metric needs.
STIEFEL_API RunRequest comparison_request(const std::string& metric = "");
STIEFEL_API ComparedRun compared_run(const RunData& run, const ComparedQuantity& quantity);

/// Statistics of the numbers that are not NaN.
struct Statistics {
  std::size_t count = 0;
  double mean = std::numeric_limits<double>::quiet_NaN();
  double deviation = mean;                           ///< with n − 1; NaN for fewer than two
  double lower = mean, median = mean, upper = mean;  ///< 25, 50 and 75%, linear between neighbors
  double least = mean, largest = mean;
};
STIEFEL_API Statistics statistics_of(std::vector<double> values);
/// "8.510 ± 0.011": two digits of the deviation, and as many decimals of the mean.
STIEFEL_API std::string with_deviation(double mean, double deviation);
/// The quantile at `share` (0 to 1) of the values that are not NaN, interpolated linearly like numpy.quantile; NaN if
/// there are none.
STIEFEL_API double quantile(std::vector<double> values, double share);

struct STIEFEL_API ComparedGroup {
  std::vector<std::string> values;  ///< of the keys, in their order
  std::vector<const ComparedRun*> runs;
  Statistics value, steps, seconds;  ///< over finished runs
  std::map<std::string, std::size_t> states;
  std::int64_t parameters = 0;  ///< 0: unknown, or not the same in all runs

  double best(Better better) const;
};

struct Comparison {
  std::vector<std::string> keys;
  std::string metric;
  Better better = Better::unknown;
  std::vector<ComparedGroup> groups;  ///< sorted by the values of the keys
};

/// A condition on a run: "key=value", or with !=, <, <=, > or >= instead of =. The constructor throws Error for
/// anything else.
class STIEFEL_API Condition {
 public:
  explicit Condition(const std::string& text, const std::string& option = "--where");
  bool holds(const ComparedRun& run) const;
  const std::string& key() const { return key_; }

 private:
  std::string key_, sign_, value_;
};

/// Keeps only the runs for which all conditions hold. Throws Error if no run has a key, or if no run is left.
STIEFEL_API void keep_where(std::vector<ComparedRun>& runs, const std::vector<std::string>& conditions);

/// The seed of a run and, in a cross-validation, its fold: "1 and fold 3".
STIEFEL_API std::string repetition_of(const ComparedRun& run);

/// Keys in which runs differ, except the seed, the fold and keys that do not affect results. The order is: methods, keys that all
/// runs have, others. An option of a differing method, or a key that some runs lack, is left out if it distinguishes no
/// more runs than the keys before it. The task, the cell, the recurrent map, the optimizer and its rate stay if all
/// runs have them, because they may explain the difference.
STIEFEL_API std::vector<std::string> differing_keys(const std::vector<ComparedRun>& runs);

/// Groups the runs by their values of `keys`. `runs` must outlive the result. Throws Error if the runs have different
/// metrics, or if no run has a key.
STIEFEL_API Comparison compare(const std::vector<ComparedRun>& runs, const std::vector<std::string>& keys);

/// Sentences on what may mislead: copies or several tasks in one group, other builds of a plugin, other contents of
/// data files.
STIEFEL_API std::vector<std::string> doubts(const std::vector<ComparedRun>& runs, const Comparison& comparison);

/// Sorts the groups by a key, or by mean, median or best (best first), or by std, n, parameters, steps or seconds
/// (smallest first). Throws Error for any other column.
STIEFEL_API void sort_groups(Comparison& comparison, const std::string& by);

/// Whether `a` sorts before `b`. Two numbers are compared as numbers, and a number comes before a text.
STIEFEL_API bool comes_before(const std::string& a, const std::string& b);

/// Throws Error with the nearest names if no run has the key.
STIEFEL_API void demand_key(const std::vector<ComparedRun>& runs, const std::string& key);

}  // namespace stiefel
