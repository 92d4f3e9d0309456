/// What the result file holds, as plain data: tables that grow by rows, and the header written once.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/index.hpp>

#include "record/hdf5.hpp"

namespace stiefel {

/// Type of a column on the disk: f8, i8, u1 (a boolean, 0 or 1) or complex. Missing f8 and complex are NaN.
using ColumnType = hdf5::Type;

/// An axis of fixed length and its coordinates, which are numbers or texts. It is written as a dimension scale in the
/// table's group.
struct Axis {
  std::string name, long_name = {};
  std::vector<double> values = {};
  std::vector<std::string> labels = {};  ///< instead of values
  Index length() const { return Index(values.empty() ? labels.size() : values.size()); }
};

/// An axis with the coordinates 0, 1, …
STIEFEL_API Axis count_axis(std::string name, Index length, std::string long_name);

struct Column {
  std::string name, units = "1", long_name = {}, description = {};
  ColumnType type = ColumnType::f8;
  std::vector<std::string> axes = {};  ///< beyond the row axis
};

/// What viewers that know NeXus, such as silx view and h5web, draw of a table.
struct Plot {
  std::string signal;        ///< the column; empty: nothing
  std::string x = {};        ///< a column that stands on the axis instead of the rows; it has no axes of its own
  bool logarithmic = false;  ///< the scale of the signal
  bool curves = false;       ///< of a signal with axes: a curve for each row instead of an image
  bool of_file = false;      ///< it is drawn when the file is opened
};

/// A group whose columns all grow along one row axis.
struct STIEFEL_API Table {
  std::string group;  ///< "/steps", "/spectrum/recurrent", …
  Column row = {};    ///< the row axis, a dimension scale too: step, epoch, snapshot
  std::vector<Axis> axes = {};
  std::vector<Column> columns = {};
  Index chunk_rows = 1024;  ///< rows compressed together, at most; fewer when rows are long
  Plot plot = {};

  /// Throws Error if there is no such axis.
  const Axis& axis(const std::string& name) const;
  /// Throws Error if there is no such column.
  const Column& column(const std::string& name) const;
  /// Doubles of one row of a column.
  Index width(const Column& column) const;
  /// Doubles of one row of all columns, in order.
  Index width() const;
};

/// Throws Error that names the group and the culprit if a name is not [a-z_][a-z0-9_]* or is taken twice, or if an axis
/// is missing or empty, or if the plot has no column.
STIEFEL_API void check(const Table& table);

// Rows of the lists in /provenance. `each` calls its argument for every field: name of the dataset, member, long_name
// and, unless they are "1", units.

/// A plugin that the run depended on, or a file that belongs to one, such as a script.
struct PluginRow {
  std::string name, kind, path, version, build_id, sha256;

  static constexpr std::string_view part = " file";  ///< ends the kind of a file that belongs to a plugin
  bool is_part() const { return kind.ends_with(part); }

  template <class V> static void each(V&& field) {
    field("name", &PluginRow::name, "name of the plugin");
    field("kind", &PluginRow::kind, "role of the plugin");
    field("path", &PluginRow::path, "file that held the plugin");
    field("version", &PluginRow::version, "version that the plugin states, or versions of what a script works with");
    field("build_id", &PluginRow::build_id, "build id of the file");
    field("sha256", &PluginRow::sha256, "SHA-256 of the file");
  }
};
struct DatasetRow {
  std::string name, path;
  std::int64_t bytes = 0;
  std::string sha256;

  template <class V> static void each(V&& field) {
    field("name", &DatasetRow::name, "name of the data file");
    field("path", &DatasetRow::path, "path of the data file");
    field("bytes", &DatasetRow::bytes, "length of the data file", "byte");
    field("sha256", &DatasetRow::sha256, "SHA-256 of the data file");
  }
};

/// A row of /provenance/segments: the work of one process on a run.
struct Segment {
  std::int64_t start_step = 0, end_step = 0;
  double started = 0, ended = 0;  ///< seconds since 1970
  std::string host, reason = "running";
  std::string changes =
      {};  ///< what this segment was allowed to change: a JSON object of the new values; empty: nothing

  template <class V> static void each(V&& field) {
    constexpr const char* seconds = "seconds since 1970-01-01T00:00:00Z";
    field("start_step", &Segment::start_step, "step at which the segment began");
    field("end_step", &Segment::end_step, "last committed step of the segment");
    field("started", &Segment::started, "time at which the segment began", seconds);
    field("ended", &Segment::ended, "time of the last commit of the segment", seconds);
    field("host", &Segment::host, "machine that ran the segment");
    field("reason", &Segment::reason, "state at the end of the segment");
    field("changes", &Segment::changes, "what was allowed to differ from before, as JSON");
  }
};

/// Wall time of all processes of a run.
STIEFEL_API double wall_seconds(const std::vector<Segment>& segments);

/// The header of a result file, written before the first row.
struct RunHeader {
  std::string title, run_id;
  std::int64_t parameters = 0;  ///< count of trained numbers; 0: not known
  double baseline =
      std::numeric_limits<double>::quiet_NaN();  ///< loss that the constant predictor reaches; NaN: not known
  std::string yaml;                              ///< the resolved document
  std::string source;                            ///< the document as written
  std::vector<std::string> overrides;            ///< on the command line
  std::string hash;                              ///< sha256 of the canonical configuration
  std::vector<std::string> origins;              ///< "key=file:line"
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<PluginRow> plugins;
  std::vector<DatasetRow> datasets;
  std::vector<Segment> segments;  ///< the last one is this process's; its `started` 0 means now

  /// The value of an entry of `provenance`, or null.
  STIEFEL_API const std::string* find_provenance(const std::string& name) const;
};

/// Row counts of tables by their groups.
using RowCounts = std::map<std::string, std::uint64_t>;

/// The state of the run at a publish.
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
