/// The result file of a run: rows are collected in memory and published as a whole.
///
/// publish() reserves room, copies results.h5 to a temporary file, appends, checks every return value, closes, re-opens
/// and verifies, syncs and renames. So results.h5 is absent or a complete file that any HDF5 reader opens at any
/// moment, whatever kills the process.
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

/// Not thread-safe: one thread must make all calls (RecorderThread does).
class STIEFEL_API ResultWriter {
 public:
  /// Writes nothing yet. Without `kept`, throws Error if the directory already holds a results.h5. With `kept`,
  /// continues that file after this many rows of each group: the next publish cuts off later rows of the tables that
  /// are defined, and the file keeps its header except for segments and folders. Throws Error (Exit::damaged) if the
  /// file has fewer rows.
  ResultWriter(std::filesystem::path run_directory, RunHeader header, std::optional<RowCounts> kept = {});

  /// Sets a function that every publish calls with the complete file before it is renamed to results.h5. If it throws,
  /// the former file stays.
  void before_replacing(std::function<void(const std::filesystem::path&)> call) { before_replacing_ = std::move(call); }

  /// Groups of the continued file, each with the step, snapshot or epoch of its last kept row, or NaN. Tables that get
  /// no more rows must be defined too, or a later publish may lose their rows.
  std::map<std::string, double> groups() const;
  /// Adds a table, before or between rows, and returns its number: 0, 1, 2, … Throws Error if a name is invalid, its
  /// group is taken, or the continued file has an axis of another length in it. A table that does not grow, because it
  /// gets no more rows, takes the lengths of that file instead.
  int define(Table table, bool grows = true);
  /// Removes a group of the continued file, if it has it, with the next publish.
  void remove(std::string group) { removed_.push_back(std::move(group)); }
  /// Adds a row: all columns flattened in order, row-major, complex as r, i. It stays in memory until the next publish.
  void append(int table, double row, std::span<const double> values);
  /// Adds all rows so far and the status to results.h5. On Error, the former results.h5 is untouched and the rows are
  /// kept, so that a later publish may succeed. The code is Exit::exhausted if the disk is full.
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
  /// Re-opens the file and checks what was written last. Throws Error (Exit::damaged) if it differs.
  void verify(const std::filesystem::path& file, std::int64_t committed_step) const;

  std::filesystem::path path_;
  std::function<void(const std::filesystem::path&)> before_replacing_;
  RunHeader header_;
  std::vector<Stored> tables_;
  std::optional<RowCounts> kept_;     // until the first publish
  std::vector<std::string> removed_;  // of the file that is continued
  bool published_ = false;
  std::uint64_t chunk_bytes_ = 0, file_bytes_ = 0;  // of results.h5: compressed rows when last measured, and all
};

}  // namespace stiefel
