// The result file of a run: rows are collected in memory and published as a whole.
#include "record/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <stiefel/error.hpp>

#include "base/atomic_file.hpp"
#include "record/header_file.hpp"
#include "record/run_folder.hpp"

namespace stiefel {
namespace {

/// Whether a column of this type can hold the value. Integers must be exact as double.
bool fits(ColumnType type, double value) {
  if (type == ColumnType::i8) return std::trunc(value) == value && std::abs(value) <= 0x1p53;
  return type != ColumnType::u1 || value == 0 || value == 1;
}

void take(PendingRows& pending, const Table& table, double row, std::span<const double> values) {
  STIEFEL_ASSERT(fits(table.row.type, row));
  std::size_t position = 0;
  for (const Column& column : table.columns)
    for (std::size_t end = position + std::size_t(table.width(column)); position < end; ++position)
      STIEFEL_ASSERT(fits(column.type, values[position]));
  position = 0;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const auto first = values.begin() + std::ptrdiff_t(position);
    position += std::size_t(table.width(table.columns[i]));
    pending.columns[i].insert(pending.columns[i].end(), first, values.begin() + std::ptrdiff_t(position));
  }
  pending.row.push_back(row);
}

void begin_segment(RunHeader& header) {
  if (header.segments.empty()) header.segments.emplace_back();
  Segment& segment = header.segments.back();
  if (segment.started <= 0) segment.started = segment.ended = seconds_since_1970();
}

}  // namespace

ResultWriter::ResultWriter(std::filesystem::path run_directory, RunHeader header, std::optional<RowCounts> kept)
    : path_(RunFolder{std::move(run_directory)}.results()),
      header_(std::move(header)),
      kept_(std::move(kept)),
      published_(kept_.has_value()) {
  if (kept_)
    check_rows();
  else if (std::filesystem::exists(path_))
    throw Error(
        fmt::format("{} already exists and is never overwritten; choose another name or move it away", path_.string()));
  begin_segment(header_);
}

void ResultWriter::check_rows() const {
  const hdf5::File file = hdf5::File::open(path_);
  for (const auto& [group, rows] : *kept_) {
    const bool there = file.root().exists(group);
    const std::uint64_t have = there ? row_count(file.root(), group) : 0;
    if (have < rows)
      throw Error(fmt::format("{} has {} rows in {}, but its checkpoint has {}: they are not from the same run",
                              path_.string(), have, group, rows),
                  Exit::damaged);
  }
}

std::map<std::string, double> ResultWriter::groups() const {
  std::map<std::string, double> found;
  if (!kept_) return found;
  const hdf5::File file = hdf5::File::open(path_);
  const auto add = [&](auto&& self, const std::string& parent) -> void {
    for (const std::string& name : file.root().group(parent.empty() ? "/" : parent).children())
      if (const std::string path = parent + "/" + name; file.root().is_group(path)) {
        const auto rows = kept_->find(path);
        found[path] = rows == kept_->end() || rows->second == 0 ? std::numeric_limits<double>::quiet_NaN()
                                                                : row_value(file.root(), path, rows->second - 1);
        self(self, path);
      }
  };
  add(add, "");
  return found;
}

int ResultWriter::define(Table table, bool grows) {
  static constexpr std::array reserved = {"/config", "/provenance", "/status"};
  for (const char* group : reserved)
    if (table.group == group || table.group.starts_with(std::string(group) + "/"))
      throw Error(fmt::format("nothing can be recorded in {}: it belongs to the result file itself", table.group));
  for (const Stored& other : tables_)
    if (other.table.group == table.group)
      throw Error(fmt::format("{} is recorded twice; rename one of the two", table.group));
  check(table);
  PendingRows pending;
  pending.columns.resize(table.columns.size());
  tables_.push_back({std::move(table), std::move(pending)});
  if (kept_) {
    Stored& stored = tables_.back();
    const hdf5::File file = hdf5::File::open(path_);
    stored.created = file.root().exists(stored.table.group);
    if (stored.created && grows) require_sizes(file.root(), stored.table);
    if (stored.created && !grows) take_sizes(file.root(), stored.table);
    if (const auto found = kept_->find(stored.table.group); found != kept_->end()) stored.published = found->second;
  }
  return int(tables_.size()) - 1;
}

void ResultWriter::append(int table, double row, std::span<const double> values) {
  STIEFEL_ASSERT(table >= 0 && std::size_t(table) < tables_.size());
  Stored& stored = tables_[std::size_t(table)];
  STIEFEL_ASSERT(Index(values.size()) == stored.table.width());
  take(stored.pending, stored.table, row, values);
}

std::uint64_t ResultWriter::bytes_needed() const {
  std::uint64_t bytes = published_ ? std::filesystem::file_size(path_) : header_bytes(header_);
  for (const Stored& stored : tables_) bytes += bytes_of_rows(stored.table, stored.pending.count(), stored.created);
  return bytes + (std::uint64_t(1) << 16);
}

/// Whether copying all rows to a new file pays: rewritten chunks that were not full leave holes. What the chunks take
/// is measured again only when the file is twice as large as they were, because it costs HDF5's whole index of chunks.
bool ResultWriter::worth_rebuilding() {
  constexpr std::uint64_t small = std::uint64_t(1) << 20;
  if (!published_ || file_bytes_ <= std::max(small, 2 * chunk_bytes_)) return false;
  const hdf5::File file = hdf5::File::open(path_);
  chunk_bytes_ = 0;
  for (const Stored& stored : tables_) chunk_bytes_ += stored_bytes(file.root(), stored.table);
  return file_bytes_ > 2 * chunk_bytes_;
}

void ResultWriter::write(const std::filesystem::path& target, std::int64_t committed_step, const Status& status,
                         bool rebuild) const {
  const bool fresh = rebuild || !published_;
  hdf5::File file = fresh ? hdf5::File::create(target) : hdf5::File::open_for_writing(target);
  if (fresh) write_header(file.root(), header_);
  if (kept_ && !fresh) {
    rewrite_provenance(file.root(), header_);
    for (const Stored& stored : tables_)
      if (stored.created) {
        complete_table(file.root(), stored.table, stored.published);
        cut_rows(file.root(), stored.table, stored.published);
      }
    for (const std::string& group : removed_)
      if (file.root().exists(group)) file.root().remove(group);
  }
  for (const Stored& stored : tables_)
    if (fresh || !stored.created) create_table(file.root(), stored.table);
  if (rebuild) {
    const hdf5::File old = hdf5::File::open(path_);
    for (const Stored& stored : tables_) copy_rows(old.root(), file.root(), stored.table, stored.published);
  }
  for (const Stored& stored : tables_) append_rows(file.root(), stored.table, stored.pending);
  write_status(file.root(), committed_step, status);
  file.close();
}

void ResultWriter::verify(const std::filesystem::path& target, std::int64_t committed_step) const {
  hdf5::File file = hdf5::File::open(target);
  for (const Stored& stored : tables_)
    verify_table(file.root(), stored.table, stored.published + stored.pending.count(), stored.pending);
  if (file.root().number_attribute("committed_step") != double(committed_step))
    throw Error(
        target.string() +
            " does not read back the committed_step that was written; the disk or its file system cannot be trusted",
        Exit::damaged);
}

void ResultWriter::publish(std::int64_t committed_step, const Status& status) {
  static constexpr std::array states = {"running", "finished", "preempted", "failed", "diverged"};
  STIEFEL_ASSERT(std::find(states.begin(), states.end(), status.state) != states.end());
  require_file();
  try {
    replace(committed_step, status);
  } catch (const std::exception&) {
    require_file();  // reports the cause, if it is that, instead of its effect
    throw;
  }
}

void ResultWriter::require_file() const {
  if (published_ && !std::filesystem::is_regular_file(path_))
    throw Error(fmt::format("{} is not the file that this run wrote: something has removed or replaced it; restore it, "
                            "or remove the run's folder and run again",
                            path_.string()),
                Exit::damaged);
}

void ResultWriter::replace(std::int64_t committed_step, const Status& status) {
  const bool rebuild = !kept_ && worth_rebuilding();
  AtomicFile file(path_);
  file.reserve(bytes_needed());
  if (published_ && !rebuild) file.copy_target();
  write(file.temporary(), committed_step, status, rebuild);
  verify(file.temporary(), committed_step);
  if (before_replacing_) before_replacing_(file.temporary());
  file.replace();
  for (Stored& stored : tables_) {
    stored.published += stored.pending.count();
    stored.created = true;
    stored.pending.clear();
  }
  published_ = true;
  kept_.reset();
  file_bytes_ = std::filesystem::file_size(path_);
  file.sync_directory();
}

}  // namespace stiefel
