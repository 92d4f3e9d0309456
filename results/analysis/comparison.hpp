/// Runs side by side: the result of each, and means, spreads and quantiles over those that differ only in the seed.
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
  std::optional<double> reach;  ///< a value that it should reach
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

/// Throws Error: no run has a value of the metric yet, if it is among the `known` names of columns, or choose from them.
[[noreturn]] STIEFEL_API void refuse_metric(const std::string& metric, const std::set<std::string>& known);

/// What a column's description says, "lower is better" or "higher is better".
STIEFEL_API Better described_direction(const std::string& description);
/// Whether lower or higher values of a column are better, as the file describes it.
STIEFEL_API Better direction(const RunDataset& column);

/// NaN if there is none.
STIEFEL_API double last_number(const std::vector<double>& values);
/// The value of a column of /epochs at the best evaluation.
STIEFEL_API std::optional<double> at_best(const RunData& run, const std::vector<double>& values);
/// The first row that is at least as good as the threshold; the number of rows if there is none.
STIEFEL_API std::size_t row_reaching(const std::vector<double>& values, double threshold, Better better);

/// The dataset that a metric such as spectrum/recurrent/singular_max names; empty for a name without a group.
STIEFEL_API std::string path_of_metric(const std::string& metric);
/// What a comparison by this metric reads.
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
/// At a position between the sorted values, as numpy.quantile has it, without NaN; NaN if nothing is left.
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

/// "key=value", and with !=, <, <=, > or >= instead of =. Throws Error for anything else.
class STIEFEL_API Condition {
 public:
  explicit Condition(const std::string& text);
  bool holds(const ComparedRun& run) const;
  const std::string& key() const { return key_; }

 private:
  std::string key_, sign_, value_;
};

/// Leaves the runs for which all conditions hold. Throws Error if no run has a key, or if none is left.
STIEFEL_API void keep_where(std::vector<ComparedRun>& runs, const std::vector<std::string>& conditions);

/// Keys in which runs differ, except the seed and keys that change no result: methods, then keys that all runs have,
/// then others. Options of methods and others are left out if they distinguish no more runs than the previous ones, but
/// not the task, the cell, the recurrent map, the optimizer and its rate if all runs have them: they may explain the
/// difference.
STIEFEL_API std::vector<std::string> differing_keys(const std::vector<ComparedRun>& runs);

/// Groups of equal values of `keys`. `runs` must outlive what is returned. Throws Error if the runs have different
/// metrics, or if no run has a key.
STIEFEL_API Comparison compare(const std::vector<ComparedRun>& runs, const std::vector<std::string>& keys);

/// Sentences on what may mislead: copies or several tasks in one group, other builds of a plugin, other contents of
/// data files.
STIEFEL_API std::vector<std::string> doubts(const std::vector<ComparedRun>& runs, const Comparison& comparison);

/// Sorts by a key of the groups, or by mean, std, median, best, n, parameters, steps, seconds, best first. Else throws
/// Error.
STIEFEL_API void sort_groups(Comparison& comparison, const std::string& by);

/// Whether `a` comes before `b`: as numbers when both are.
STIEFEL_API bool comes_before(const std::string& a, const std::string& b);

/// Throws Error with the nearest names if no run has the key.
STIEFEL_API void demand_key(const std::vector<ComparedRun>& runs, const std::string& key);

}  // namespace stiefel
