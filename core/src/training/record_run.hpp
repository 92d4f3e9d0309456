// The files of one run: its directory, result file, progress, log and weights.
#pragma once

#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <stiefel/task.hpp>

#include "config/load.hpp"
#include "record/progress.hpp"
#include "record/recorder_thread.hpp"
#include "record/run_directory.hpp"
#include "training/checkpoint.hpp"
#include "training/run.hpp"

namespace stiefel {

/// What the result file records about a run before its first row.
RunHeader header_of(const LoadedExperiment& loaded, const Registry& registry, const RunOptions& options,
                    const std::vector<DataFile>& data, int threads);

/// The data files, with their hashes.
STIEFEL_API std::vector<DatasetRow> datasets_of(const std::vector<DataFile>& files);
/// The files that the methods of an experiment come from.
STIEFEL_API std::vector<PluginRow> plugins_of(const Experiment& experiment, const Registry& registry);

class RunRecord {
 public:
  /// Shows the descriptor of log.txt to whoever may have to end the process without an exception, while this exists.
  class ShownLog {
   public:
    /// `shown` may be null.
    ShownLog(const RunRecord& record, std::atomic<int>* shown);
    ~ShownLog();
    ShownLog(const ShownLog&) = delete;
    ShownLog& operator=(const ShownLog&) = delete;

   private:
    std::atomic<int>* shown_;
  };

  /// Begins a run in a fresh directory below `root`. A finished run of the same configuration and build is left as it
  /// is; one of another build gets a second folder; an unfinished one is an Error that says what to do.
  RunRecord(RunHeader header, const std::filesystem::path& root);
  /// Continues the run in a directory after a step at which results.h5 had this many rows of each group. Its config.yaml
  /// and then its results change with the first publish().
  RunRecord(RunHeader header, RunDirectory directory, Index step, const RowCounts& kept);

  /// For a process that writes nothing, because the run belongs to another one.
  RunRecord() { recorder_ = std::make_unique<RecorderThread>(); }

  bool finished_before() const { return !recorder_; }
  /// Why there is nothing to do, or why the folder has another name than its ID; else empty.
  const std::string& message() const { return message_; }
  const std::filesystem::path& directory() const { return path_; }
  RecorderThread& recorder() { return *recorder_; }
  /// Wall time of earlier processes of the run, and that up to the last evaluation that counts.
  double seconds_before() const { return seconds_before_; }
  double evaluated_before() const { return evaluated_before_; }

  void progress(std::int64_t step, double step_seconds, std::span<const std::pair<std::string, double>> values) {
    if (progress_) progress_->write(step, step_seconds, values);
  }
  void log(const std::string& line) {
    log_.clear();  // the disk may have had no room for the line before
    log_ << line << std::endl;
  }
  void publish(Index step, Status status);
  /// RunFolder{directory}.network(which).
  template <class S>
  void network(const std::string& which, const Layout& layout, const NetworkState<S>& state, Index step) const;
  void remove_network(const std::string& which) const;
  /// Of an earlier end of the run, once its results are no longer in results.h5.
  void remove_outcome() const;
  /// The network with the batch that broke it.
  template <class S>
  void diverged(const Layout& layout, const NetworkState<S>& state, const Batch<S>& batch, Index step) const;
  /// Writes the checkpoint, which stores the number of rows recorded so far.
  template <class S> void save(const Layout& layout, Checkpoint<S> checkpoint, const CheckpointOptions& options);
  void finish(Index step, const Status& status);
  /// A run that is continued, and has not published anything since, keeps its results: only the log tells the message.
  void fail(const std::string& message, int exit_code) noexcept;

 private:
  Status with_time(Status status) const;
  /// `after`: the step after which the run resumes.
  void open(std::unique_ptr<RecorderThread> recorder, std::optional<Index> after = {});
  /// Throws unless the folder is still this process's: a worker of a sweep may have taken it for dead.
  void require_lock() const;
  /// In the recorder's thread, and like all that follows only with the lock.
  void call(std::function<void()> work, const std::string& name = "") const;

  std::filesystem::path path_;
  std::string message_;
  std::optional<RunDirectory> directory_;
  std::unique_ptr<RecorderThread> recorder_;
  std::unique_ptr<ProgressLog> progress_;
  std::ofstream log_;
  std::string configuration_;  // replaces config.yaml with the first publish; empty: it stays
  bool continued_ = false;     // results of an earlier process
  bool begun_ = false;         // something may have been published
  Index committed_ = 0;
  Status published_;  // the last
  double cpu_before_ = 0, seconds_before_ = 0, evaluated_before_ = 0;
};

}  // namespace stiefel
