/// The runs of a report, in the groups of `stiefel compare`. The label of a group has the keys that distinguish it.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "results/analysis/comparison.hpp"
#include "results/analysis/labels.hpp"
#include "results/analysis/report/figure.hpp"
#include "results/analysis/run_data.hpp"

namespace stiefel::report {

/// What runs are ranked by: a metric as in `stiefel compare`, or the last value of a dataset that is named by its path.
struct Metric {
  std::string name, label, units = "1";
  Better better = Better::unknown;

  bool is_path() const { return !path_of_metric(name).empty(); }
  /// The value of a run; NaN if it has none.
  double of(const RunData& run) const;
  /// Path of the dataset with its values over time.
  std::string path() const { return is_path() ? path_of_metric(name) : "/epochs/" + name; }
};

struct Group {
  std::string label;
  std::vector<RunData> runs;    ///< in the order of their seeds
  std::int64_t parameters = 0;  ///< 0: unknown, or not the same in all runs
  Style style = {};
};
/// The loss of the constant predictor, from the first run that records it; NaN if none does.
double baseline_of(const Group& group);

/// How many groups figures show: as many as styles distinguish.
constexpr std::size_t most_groups = hues * dashes;

/// The styles of groups. If no key distinguishes all groups alone, the first key has the hues, the second the dashes
/// and the others the panels. Groups that differ otherwise, or in too many values, are numbered.
class Design {
 public:
  Design() = default;
  Design(const std::vector<Group>& groups, const std::vector<std::string>& keys, const Labels& labels);

  /// The style of a run, without what the key `without` contributes. `number` counts the groups.
  Style style(const RunData& run, std::size_t number, const std::string& without = "") const;
  const std::vector<LegendKey>& legend() const { return legend_; }    ///< empty for numbered groups
  const std::vector<std::string>& panels() const { return panels_; }  ///< titles; empty if there is one

 private:
  struct Means {
    std::vector<std::string> keys;
    std::vector<std::vector<std::string>> values;  ///< in their order
    std::vector<std::string> labels;
  };
  std::vector<Means> means_;  // hue, dash and panel; empty for numbered groups
  std::vector<LegendKey> legend_;
  std::vector<std::string> panels_;
};

struct Study {
  std::vector<Group> groups;      ///< in the order of their labels, or the best first if there are too many to draw
  std::vector<std::string> keys;  ///< keys of the configuration that distinguish the groups
  std::vector<RunData> unreadable;
  std::vector<std::string> doubts;  ///< sentences on what may mislead
  Metric metric;
  Design design;
  Labels labels;
  std::string seed;  ///< for figures that show one run of a group; empty: the one that most groups have

  std::vector<const RunData*> runs() const;
  /// The groups that figures show.
  std::span<const Group> shown() const { return std::span(groups).first(std::min(groups.size(), most_groups)); }
};

/// The request that reads what a report with this metric needs.
RunRequest report_request(const std::string& metric);

class StudyBuilder {
 public:
  /// An empty metric means the one that selects the runs' best models; no keys means those in which runs differ.
  /// `where` is as for keep_where(), `labels` as for Labels, which may also name the keys `against`.
  StudyBuilder(std::string metric, std::vector<std::string> keys, std::vector<std::string> where,
               std::vector<std::string> labels, std::vector<std::string> against)
      : metric_(std::move(metric)),
        keys_(std::move(keys)),
        where_(std::move(where)),
        labels_(std::move(labels)),
        against_(std::move(against)) {}
  /// Adds a run, and keeps the parts of it that figures need.
  void take(RunData&& run);
  /// Makes the study. Throws Error if no run can be read, or if there is no such metric or key.
  Study finish();

 private:
  std::string metric_;
  std::vector<std::string> keys_, where_, labels_, against_;
  std::vector<RunData> runs_, unreadable_;
};

/// A metric's name or path in words: "validation loss"; at most longest_title characters.
std::string readable(std::string name);
/// The value of a key as it is shown; "–" if the configuration has none.
std::string value_of(const RunData& run, const std::string& key);
/// The values of the keys: names of plugins and labels alone, others as key=value. At most longest_title characters.
std::string label_of(const RunData& run, const std::vector<std::string>& keys, const Labels& labels);
std::vector<std::string> values_of(const RunData& run, const std::vector<std::string>& keys);
/// Whether values come before others: the first that differ decide.
bool come_before(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace stiefel::report
