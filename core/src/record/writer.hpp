/// The result file of a run: rows are collected in memory and published as a whole.
///
/// publish = reserve room, copy results.h5 to a temporary file, append, check every return, close, re-open and verify,
/// fsync, rename: at any moment results.h5 is absent or a complete file that any HDF5 reader opens, whatever kills the
/// process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <stiefel/export.hpp>

#include "record/layout.hpp"
#include "record/table_file.hpp"

namespace stiefel {

/// Single-threaded: one thread makes all calls (RecorderThread does).
class STIEFEL_API ResultWriter {
 public:
  /// Writes nothing yet. Without `kept`: Error when the directory holds a results.h5 already. With it, continues that
  /// file after this many rows of each group; what lies beyond them in the tables that are defined is cut off by the
  /// next publish. The header but for its segments is that of the file. Error (Exit::damaged) when it has fewer rows.
  ResultWriter(std::filesystem::path run_directory, RunHeader header, std::optional<RowCounts> kept = {});

  /// What is called at each publish with the complete file before it is renamed to results.h5; an Error of it leaves
  /// the former file.
  void before_replacing(std::function<void(const std::filesystem::path&)> call) { before_replacing_ = std::move(call); }

  /// Groups of the file that is continued, each with the step, snapshot or epoch of its last row that is kept, or NaN.
  /// Tables that get no more rows must be defined too, or else their rows are not kept.
  std::map<std::string, double> groups() const;
  /// A new table, before or between rows; returns its number: 0, 1, 2, … Error when its names are not fit, its group is
  /// taken, or the file that is continued has arrays of other sizes in it. One that does not grow, because it gets no
  /// more rows, has the sizes of that file.
  int define(Table table, bool grows = true);
  /// Removes a group of the file that is continued, if it has it, with the next publish.
  void remove(std::string group) { removed_.push_back(std::move(group)); }
  /// One row: all columns flattened in order, row-major, complex as r, i. Kept in memory until the next publish.
  void append(int table, double row, std::span<const double> values);
  /// Makes all rows so far, and the status, part of results.h5. On Error the former results.h5 is untouched and the
  /// rows are kept, so that a later publish may succeed; Exit::exhausted when there is no room.
  void publish(std::int64_t committed_step, const Status& status);

  const std::filesystem::path& path() const { return path_; }

 private:
  struct Stored {
    Table table;
    PendingRows pending;
    std::uint64_t published = 0;  // rows in results.h5
    bool created = false;         // the group is in results.h5
  };
  void check_rows() const;
  std::uint64_t bytes_needed() const;
  void require_file() const;
  void replace(std::int64_t committed_step, const Status& status);
  bool worth_rebuilding();
  void write(const std::filesystem::path& file, std::int64_t committed_step, const Status& status, bool rebuild) const;
  /// Re-opens the file and looks at what was written last.
  void verify(const std::filesystem::path& file, std::int64_t committed_step) const;

  std::filesystem::path path_;
  std::function<void(const std::filesystem::path&)> before_replacing_;
  RunHeader header_;
  std::vector<Stored> tables_;
  std::optional<RowCounts> kept_;     // until the first publish
  std::vector<std::string> removed_;  // of the file that is continued
  bool published_ = false;
  std::uint64_t chunk_bytes_ = 0, file_bytes_ = 0;  // of results.h5: rows compressed, when last looked up, and all
};

}  // namespace stiefel
