/// What the result file holds, as plain data: tables that grow by rows, and the header written once.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/index.hpp>

namespace stiefel {

/// Types on the disk. Missing f8 and complex are NaN; u1 is a boolean, 0 or 1; complex is {r, i}, two doubles per
/// value.
enum class ColumnType { f8, i8, u1, complex };

/// An axis of fixed length and its coordinates, numbers or texts, written as a dimension scale in the table's group.
struct Axis {
  std::string name, long_name = {};
  std::vector<double> values = {};
  std::vector<std::string> labels = {};  ///< instead of values
  Index length() const { return Index(values.empty() ? labels.size() : values.size()); }
};

/// Of the coordinates 0, 1, …
STIEFEL_API Axis count_axis(std::string name, Index length, std::string long_name);

struct Column {
  std::string name, units = "1", long_name = {}, description = {};
  ColumnType type = ColumnType::f8;
  std::vector<std::string> axes = {};  ///< beyond the row axis
};

/// A group whose columns all grow along one row axis.
struct STIEFEL_API Table {
  std::string group;  ///< "/steps", "/spectrum/recurrent", …
  Column row = {};    ///< the row axis, a dimension scale too: step, epoch, snapshot
  std::vector<Axis> axes = {};
  std::vector<Column> columns = {};
  Index chunk_rows = 1024;  ///< rows compressed together, at most; fewer when rows are long

  /// Throws Error when there is none.
  const Axis& axis(const std::string& name) const;
  /// Doubles of one row of a column.
  Index width(const Column& column) const;
  /// Doubles of one row of all columns, in order.
  Index width() const;
};

/// Throws Error naming group and name when a name is not [a-z_][a-z0-9_]*, is taken twice or an axis is missing.
STIEFEL_API void check(const Table& table);

/// A plugin or data file that the run depended on.
struct PluginRow {
  std::string name, kind, path, version, build_id, sha256;
};
struct DatasetRow {
  std::string name, path;
  std::int64_t bytes = 0;
  std::string sha256;
};

/// A row of /provenance/segments: the work of one process on a run.
struct Segment {
  std::int64_t start_step = 0, end_step = 0;
  double started = 0, ended = 0;  ///< seconds since 1970
  std::string host, reason = "running";
  std::string changes =
      {};  ///< what was allowed to differ from before: a JSON object of the new values; empty: nothing
};

/// Wall time of all processes of a run.
STIEFEL_API double wall_seconds(const std::vector<Segment>& segments);

/// Written once, before the first row.
struct RunHeader {
  std::string title, run_id;
  std::int64_t parameters = 0;  ///< numbers that are trained; 0: not told
  double baseline =
      std::numeric_limits<double>::quiet_NaN();  ///< loss that a trivial predictor reaches; NaN: not known
  std::string yaml;                              ///< the resolved document
  std::string source;                            ///< the document as written
  std::vector<std::string> overrides;            ///< of the command line
  std::string hash;                              ///< sha256 of the canonical configuration
  std::vector<std::string> origins;              ///< "key=file:line"
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<PluginRow> plugins;
  std::vector<DatasetRow> datasets;
  std::vector<Segment> segments;  ///< the last one is that of this process; started 0: now

  /// The value of an entry of `provenance`; null when there is none.
  STIEFEL_API const std::string* find_provenance(const std::string& name) const;
};

/// Rows of the tables by their groups.
using RowCounts = std::map<std::string, std::uint64_t>;

/// How the run stands at a publish.
struct Status {
  std::string state = "running";  ///< running | finished | preempted | failed | diverged
  std::string message;
  int exit_code = 0;
  double best_metric = std::numeric_limits<double>::quiet_NaN();  ///< NaN: none yet
  std::int64_t best_step = -1;                                    ///< -1: none yet
  double cpu_seconds =
      std::numeric_limits<double>::quiet_NaN();  ///< processor time of all processes of the run; NaN: not known
};

}  // namespace stiefel
