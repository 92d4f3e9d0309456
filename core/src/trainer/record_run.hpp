// The files of one run: its directory, result file, progress, log and weights.
#pragma once

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <stiefel/task.hpp>

#include "config/load.hpp"
#include "engine/parameters.hpp"
#include "results/progress.hpp"
#include "results/recorder_thread.hpp"
#include "results/run_directory.hpp"
#include "trainer/trainer.hpp"

namespace stiefel {

class RunRecord {
 public:
  /// Begins a run in a fresh directory. A finished run of the same configuration and build is left as it is; one of another build gets a
  /// neighbour; an unfinished one is an Error that says what to do.
  RunRecord(const LoadedExperiment& loaded, const Registry& registry, const RunOptions& options, const std::vector<DataFile>& data,
            int threads);

  bool finished_before() const { return !recorder_; }
  const std::string& message() const { return message_; }
  const std::filesystem::path& directory() const { return path_; }
  RecorderThread& recorder() { return *recorder_; }

  void progress(std::int64_t step, double step_seconds, std::span<const std::pair<std::string, double>> values) {
    progress_->write(step, step_seconds, values);
  }
  void log(const std::string& line) { log_ << line << std::endl; }
  void publish(Index step, Status status);
  /// checkpoints/<which>.h5: one array per block.
  template <class S> void weights(const std::string& which, const Layout& layout, const std::vector<S>& values, Index step) const;
  /// weights("step_N"); of these only the last `keep` stay.
  template <class S> void snapshot(const Layout& layout, const std::vector<S>& values, Index step, Index keep);
  void finish(Index step, const Status& status);
  void fail(const std::string& message, int exit_code) noexcept;

 private:
  std::filesystem::path path_;
  std::string message_;
  std::optional<RunDirectory> directory_;
  std::unique_ptr<RecorderThread> recorder_;
  std::unique_ptr<ProgressLog> progress_;
  std::ofstream log_;
  Index committed_ = 0;
  std::vector<std::string> snapshots_;
};

}  // namespace stiefel
