/// Runs put together for a report, in the groups of `stiefel compare`: the label of a group has the keys that
/// distinguish it.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "results/analysis/comparison.hpp"
#include "results/analysis/report/figure.hpp"
#include "results/analysis/run_data.hpp"

namespace stiefel::report {

/// What runs are ranked by: as in `stiefel compare`, or the last value of a dataset that is named by its path.
struct Metric {
  std::string name, label, units = "1";
  Better better = Better::unknown;

  bool is_path() const { return !path_of_metric(name).empty(); }
  /// NaN when the run has none.
  double of(const RunData& run) const;
  /// Path of the dataset with its values over time.
  std::string path() const { return is_path() ? path_of_metric(name) : "/epochs/" + name; }
};

struct Group {
  std::string label;
  std::vector<RunData> runs;    ///< by their seeds
  std::int64_t parameters = 0;  ///< 0: unknown, or not the same in all runs
};
/// The loss of a predictor without memory, of the first run that knows it; NaN if none does.
double baseline_of(const Group& group);

struct Study {
  std::vector<Group> groups;      ///< in the order of their labels, or the best first if there are too many to draw
  std::vector<std::string> keys;  ///< keys of the configuration that distinguish the groups
  std::vector<RunData> unreadable;
  std::vector<std::string> doubts;  ///< sentences on what may mislead
  Metric metric;
  std::string seed;  ///< of figures that show one run of a group; empty: one that as many groups as possible have

  std::vector<const RunData*> runs() const;
  /// The groups that figures show.
  std::span<const Group> shown() const {
    return std::span(groups).first(std::min<std::size_t>(groups.size(), colours));
  }
};

/// What a report with this metric reads.
RunRequest report_request(const std::string& metric);

class StudyBuilder {
 public:
  /// An empty metric: what the runs select by; no keys: those in which they differ. `where`: as of keep_where().
  StudyBuilder(std::string metric, std::vector<std::string> keys, std::vector<std::string> where)
      : metric_(std::move(metric)), keys_(std::move(keys)), where_(std::move(where)) {}
  /// Keeps the parts of the run that figures need.
  void take(RunData&& run);
  /// Throws Error if nothing can be read, or if there is no such metric or key.
  Study finish();

 private:
  std::string metric_;
  std::vector<std::string> keys_, where_;
  std::vector<RunData> runs_, unreadable_;
};

/// A metric's name or path in words: "validation loss"; at most longest_title characters.
std::string readable(std::string name);
/// The value of a key as it is shown; "–" when a configuration has none.
std::string value_of(const RunData& run, const std::string& key);
/// Values of the keys, those of plugins alone and others as key=value; at most longest_title characters.
std::string label_of(const RunData& run, const std::vector<std::string>& keys);

}  // namespace stiefel::report
