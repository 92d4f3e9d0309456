/// The trainer's side of the result file. One thread owns the ResultWriter and makes all calls into HDF5.
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

/// How many bytes of rows a run may hold before it publishes them, and how many may be queued.
constexpr std::size_t most_unpublished = std::size_t(128) << 20, most_queued = std::size_t(32) << 20;

/// Queues the calls of ResultWriter, which the thread makes in order. A call waits only if `capacity` calls or
/// most_queued bytes are queued already. If a call fails in the thread, every later one throws its exception, and
/// nothing more is recorded.
class STIEFEL_API RecorderThread {
 public:
  /// With `kept`, continues a results.h5 after this many rows of each group.
  RecorderThread(const std::filesystem::path& run_directory, RunHeader header, std::optional<RowCounts> kept = {},
                 std::size_t capacity = 256);
  /// A recorder that ignores all calls.
  RecorderThread() : capacity_(0) {}
  /// Unless finish() was called, waits for the call in progress and drops the queued ones.
  ~RecorderThread();
  RecorderThread(const RecorderThread&) = delete;
  RecorderThread& operator=(const RecorderThread&) = delete;

  void before_replacing(std::function<void(const std::filesystem::path&)> call);
  /// Whether the continued results.h5 has this group.
  bool continues(const std::string& group) const { return continued_.contains(group); }
  int define(Table table, bool grows = true);
  void remove(std::string group);
  void append(int table, double row, std::span<const double> values);
  /// Step, snapshot or epoch of the last row of a table; NaN if it has none.
  double last_row(int table) const { return tables_[std::size_t(table)].last; }
  /// Bytes of rows since the last publish().
  std::size_t unpublished() const { return unpublished_; }
  /// Row counts of each group, including queued and kept rows.
  RowCounts rows() const;
  /// Calls `before` in the thread and then publishes. A queued publish is dropped when the next one is queued, unless a
  /// nameless call() is between them. So a disk that is slower than the evaluations does not delay training.
  void publish(std::int64_t committed_step, Status status, std::function<void()> before = {});
  /// Runs `work` in the thread when its turn comes, to write other files with HDF5. Waits while two calls are pending,
  /// because each may hold a whole network. Of queued calls with the same name, only the last one is made, as with
  /// publish().
  void call(std::function<void()> work, const std::string& name = "");
  /// Waits until all calls so far are done.
  void wait();
  /// Publishes, waits and ends the thread. No call may follow.
  void finish(std::int64_t committed_step, Status status);

 private:
  struct Command {
    std::function<void(ResultWriter&)> work;
    std::string name = {};  // a later command with this name replaces it; empty: never replaced
    std::size_t bytes = 0;  // of the row it holds
    bool is_call = false;   // without a name, commands before it are not replaced by later ones
  };
  void push(Command command);
  void leave_out_queued(const std::string& name);
  void work(ResultWriter& writer);
  void stop(bool drop_queued);
  void rethrow(std::unique_lock<std::mutex>& lock);

  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;  // signals any change below
  std::deque<Command> queue_;
  std::size_t queued_ = 0, unpublished_ = 0;  // bytes
  int calls_ = 0;                             // calls by call() that have not ended
  bool busy_ = false, stopping_ = false;
  std::exception_ptr failure_;
  RowCounts kept_;
  std::map<std::string, double> continued_;  // ResultWriter::groups()
  struct DefinedTable {
    std::string group;
    std::uint64_t rows = 0;
    double last = std::numeric_limits<double>::quiet_NaN();
  };
  std::vector<DefinedTable> tables_;
  std::thread thread_;
};

}  // namespace stiefel
