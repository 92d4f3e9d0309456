/// The trainer's side of the result file: one thread owns the ResultWriter, and with it every call into HDF5.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <stiefel/export.hpp>

#include "record/layout.hpp"

namespace stiefel {

class ResultWriter;

/// Bytes of rows that a run may hold before it publishes them, and that may be queued.
constexpr std::size_t most_unpublished = std::size_t(128) << 20, most_queued = std::size_t(32) << 20;

/// The calls of ResultWriter, in order, returning at once; a caller that is `capacity` calls or most_queued bytes ahead of the disk waits.
/// What goes wrong in the thread is thrown by the next call, and by every later one: nothing is recorded any more.
class STIEFEL_API RecorderThread {
 public:
  /// `kept`: continues a results.h5 after this many rows of each group.
  RecorderThread(const std::filesystem::path& run_directory, RunHeader header, std::optional<RowCounts> kept = {},
                 std::size_t capacity = 256);
  /// Records nothing.
  RecorderThread() : capacity_(0) {}
  /// Without finish(): waits for the call in progress and drops what is queued.
  ~RecorderThread();
  RecorderThread(const RecorderThread&) = delete;
  RecorderThread& operator=(const RecorderThread&) = delete;

  void before_replacing(std::function<void(const std::filesystem::path&)> call);
  /// Whether the results.h5 that is continued has this group.
  bool continues(const std::string& group) const { return continued_.contains(group); }
  int define(Table table, bool grows = true);
  void remove(std::string group);
  void append(int table, double row, std::span<const double> values);
  /// Step, snapshot or epoch of the last row of a table; NaN: it has none.
  double last_row(int table) const { return tables_[std::size_t(table)].last; }
  /// Bytes of rows since the last publish().
  std::size_t unpublished() const { return unpublished_; }
  /// Rows of each group, those included that are still queued.
  RowCounts rows() const;
  /// `before`: called in the thread. A publish that is still queued when the next one comes is left out, unless a call
  /// without a name stands between them: a disk slower than the evaluations does not hold up the training.
  void publish(std::int64_t committed_step, Status status, std::function<void()> before = {});
  /// Runs `work` in the thread, in its turn: for other files that are written through HDF5. A third one waits for the
  /// first: each may hold a whole network. Of queued calls with the same name, the last one is made, as of publish().
  void call(std::function<void()> work, const std::string& name = "");
  /// Returns when all calls so far are done.
  void wait();
  /// Publishes, waits, ends the thread. No call may follow.
  void finish(std::int64_t committed_step, Status status);

 private:
  struct Command {
    std::function<void(ResultWriter&)> work;
    std::string name = {};  // of what a later one with this name replaces
    std::size_t bytes = 0;  // of a row
    bool is_call = false;   // without a name, nothing before it is replaced by anything after it
  };
  void push(Command command);
  void leave_out_queued(const std::string& name);
  void work(ResultWriter& writer);
  void stop(bool drop_queued);
  void rethrow(std::unique_lock<std::mutex>& lock);

  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;  // any of the following
  std::deque<Command> queue_;
  std::size_t queued_ = 0, unpublished_ = 0;  // bytes
  int calls_ = 0;                             // of call(), not ended
  bool busy_ = false, stopping_ = false;
  std::exception_ptr failure_;
  RowCounts kept_;
  std::map<std::string, double> continued_;  // as of ResultWriter::groups()
  struct DefinedTable {
    std::string group;
    std::uint64_t rows = 0;
    double last = std::numeric_limits<double>::quiet_NaN();
  };
  std::vector<DefinedTable> tables_;
  std::thread thread_;
};

}  // namespace stiefel
