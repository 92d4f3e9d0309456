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

/// The data files with their hashes.
STIEFEL_API std::vector<DatasetRow> datasets_of(const std::vector<DataFile>& files);
/// The plugins of an experiment with their files and hashes.
STIEFEL_API std::vector<PluginRow> plugins_of(const Experiment& experiment, const Registry& registry);

class RunRecord {
 public:
  /// While this exists, `shown` is a descriptor of log.txt, for code that ends the process without an exception.
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

  /// Begins a run in a new directory below `root`, unless the same run has finished there; if that was made by another
  /// build, with other data or with changes, this one gets a second folder. Throws Error (Exit::in_use) if the run is
  /// in progress, has diverged or can be resumed.
  RunRecord(RunHeader header, const std::filesystem::path& root);
  /// Continues the run in a directory after `step`, at which results.h5 had `kept` rows of each group. config.yaml and
  /// results.h5 stay as they are until the first publish().
  RunRecord(RunHeader header, RunDirectory directory, Index step, const RowCounts& kept);

  /// Records nothing; for a rank that is not the first.
  RunRecord() { recorder_ = std::make_unique<RecorderThread>(); }

  bool finished_before() const { return !recorder_; }
  /// Why there is nothing to do, why the folder's name is not the ID, or why the run starts again; else empty.
  const std::string& message() const { return message_; }
  const std::filesystem::path& directory() const { return path_; }
  RecorderThread& recorder() { return *recorder_; }
  /// Wall time of earlier processes of the run: in total, and up to the last evaluation that is kept.
  double seconds_before() const { return seconds_before_; }
  double evaluated_before() const { return evaluated_before_; }

  void progress(std::int64_t step, double step_seconds, std::span<const std::pair<std::string, double>> values) {
    if (progress_) progress_->write(step, step_seconds, values);
  }
  void log(const std::string& line) {
    log_.clear();  // the line before may have failed on a full disk
    log_ << line << std::endl;
  }
  void publish(Index step, Status status);
  /// What the networks that follow keep of their task.
  void keep(Trained trained) { trained_ = std::make_shared<const Trained>(std::move(trained)); }
  /// Writes RunFolder{directory()}.network(which).
  template <class S>
  void network(const std::string& which, const Layout& layout, const NetworkState<S>& state, Index step) const;
  void remove_network(const std::string& which) const;
  /// Removes the folder `outcome` of an earlier end of the run, after results.h5 has been published without it.
  void remove_outcome() const;
  /// Writes diverged.h5: the network and the batch at which the run diverged.
  template <class S>
  void diverged(const Layout& layout, const NetworkState<S>& state, const Batch<S>& batch, Index step) const;
  /// Writes the checkpoint, which stores the number of rows recorded so far.
  template <class S> void save(const Layout& layout, Checkpoint<S> checkpoint, const CheckpointOptions& options);
  void finish(Index step, const Status& status);
  /// Ends the run as failed, or as diverged for Exit::diverged. A run that is continued, but has not published anything
  /// since, keeps its results.h5; then only the log has the message.
  void fail(const std::string& message, int exit_code) noexcept;

 private:
  Status with_time(Status status) const;
  /// `after`: the step after which the run resumes.
  void open(std::unique_ptr<RecorderThread> recorder, std::optional<Index> after = {});
  /// Throws Error (Exit::in_use) if the folder is no longer this process's. A worker of a sweep may have taken it over.
  void require_lock() const;
  /// Runs `work` in the recorder's thread after require_lock(). If that throws, nothing that follows is written either.
  void call(std::function<void()> work, const std::string& name = "") const;

  std::filesystem::path path_;
  std::string message_;
  std::optional<RunDirectory> directory_;
  std::unique_ptr<RecorderThread> recorder_;
  std::unique_ptr<ProgressLog> progress_;
  std::ofstream log_;
  std::shared_ptr<const Trained> trained_ = std::make_shared<const Trained>();
  std::string configuration_;  // replaces config.yaml at the first publish(); empty: it stays
  bool continued_ = false;     // there are results of an earlier process
  bool begun_ = false;         // something may have been published
  Index committed_ = 0;
  Status published_;  // that of the last publish()
  double cpu_before_ = 0, seconds_before_ = 0, evaluated_before_ = 0;
};

}  // namespace stiefel
