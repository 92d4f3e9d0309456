// A run trains, evaluates and records until its steps are done, nothing improves, it diverges, or it is asked to stop.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <stiefel/task.hpp>

#include "config/load.hpp"
#include "engine/ranks.hpp"
#include "host/registry.hpp"

namespace stiefel {

/// The progress of a run, for its observer.
struct Progress {
  Index step = 0, steps = 0;
  double epoch = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();          ///< mean over the last steps
  double best = std::numeric_limits<double>::quiet_NaN();          ///< selecting quantity of the best evaluation
  double step_seconds = std::numeric_limits<double>::quiet_NaN();  ///< median of the last steps
  double seconds = 0;                                              ///< wall time of all processes of the run
};

class STIEFEL_API RunObserver {
 public:
  virtual ~RunObserver();
  virtual void note(const std::string& line) = 0;
  virtual void warning(const std::string& sentence) { note("warning: " + sentence); }
  virtual void evaluation(const std::string& line) { note(line); }  ///< what one evaluation found
  virtual void progress(const Progress& progress) = 0;              ///< after every step
};

struct RunOptions {
  std::filesystem::path output = "runs";
  std::string data_directory;
  std::filesystem::path working_directory;  ///< base of relative paths in the experiment; empty: the current one
  std::vector<std::string> command_line;
  const std::atomic<int>* signal = nullptr;  ///< set to a signal number to save a checkpoint after the step and stop
  std::atomic<bool>* save = nullptr;         ///< set to save a checkpoint after the step
  std::atomic<int>* log = nullptr;           ///< set to a descriptor of log.txt while the run writes it, then to −1
  Ranks* ranks = nullptr;  ///< processes that train together; the first one writes; null: only this one
  std::shared_ptr<const Trained> trained = {};  ///< of a trained network, unless its file is of an earlier build
  /// Called with the files of the task before the network is built; throws Error if they are not the right ones.
  std::function<void(const std::vector<DataFile>&)> check_data = {};
  Index until = 0;  ///< step after which to save a checkpoint and stop; 0: to the end
};

struct RunSummary {
  std::string state;  ///< finished, preempted, diverged, or existing: it was finished before
  std::string message;
  std::filesystem::path directory;
  int exit_code = 0;
};

/// The folders that a run was started with; empty if its files do not tell.
struct StartedIn {
  std::filesystem::path working_directory, data_directory;
};
STIEFEL_API StartedIn started_in(const std::filesystem::path& run);

/// Runs an experiment in the scalar type that it names.
STIEFEL_API RunSummary run_experiment(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                                      RunObserver& observer);
/// Resumes a run from its newest intact checkpoint, or from the start if it has none; `loaded` is its config.yaml.
/// `allowed` names what may differ from the start of the run: keys of the configuration, "plugin:NAME", "data:NAME",
/// names of /provenance, or "all". Throws Error that lists everything else that differs.
STIEFEL_API RunSummary resume_experiment(const std::filesystem::path& directory, const LoadedExperiment& loaded,
                                         Registry& registry, const RunOptions& options,
                                         const std::vector<std::string>& allowed, RunObserver& observer);

}  // namespace stiefel
