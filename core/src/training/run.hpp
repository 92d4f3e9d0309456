// A run: train, evaluate, record, until the steps are done, nothing improves, the numbers break, or somebody asks to
// stop.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <stiefel/task.hpp>

#include "config/load.hpp"
#include "engine/ranks.hpp"
#include "host/registry.hpp"

namespace stiefel {

/// Where a run stands, for whoever watches it.
struct Progress {
  Index step = 0, steps = 0;
  double epoch = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();          ///< mean over the last steps
  double best = std::numeric_limits<double>::quiet_NaN();          ///< selecting quantity of the best evaluation
  double step_seconds = std::numeric_limits<double>::quiet_NaN();  ///< median of the last steps
  double seconds = 0;                                              ///< of all processes of the run
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
  std::filesystem::path working_directory;  ///< in which relative paths of the experiment begin; empty: the current one
  std::vector<std::string> command_line;
  const std::atomic<int>* signal = nullptr;  ///< set to a signal number to save a checkpoint after the step and stop
  std::atomic<bool>* save = nullptr;         ///< set to save a checkpoint after the step
  std::atomic<int>* log = nullptr;  ///< becomes a descriptor of the run's log.txt while that is written, and −1 again
  Ranks* ranks = nullptr;  ///< the processes that train together, of which the first one writes; null: this one alone
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

/// Where a run was started, as far as its results tell: empty where they do not.
struct StartedIn {
  std::filesystem::path working_directory, data_directory;
};
STIEFEL_API StartedIn started_in(const std::filesystem::path& run);

/// Runs in the scalar that the experiment names. Throws Error.
STIEFEL_API RunSummary run_experiment(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                                      RunObserver& observer);
/// Resumes a run from its newest intact checkpoint, or from the start if it has none; `loaded` is its config.yaml.
/// `allowed` names what may differ from the start of the run: keys of the configuration, "plugin:NAME", "data:NAME",
/// names of /provenance, or "all". Anything else that differs is an Error that lists it.
STIEFEL_API RunSummary resume_experiment(const std::filesystem::path& directory, const LoadedExperiment& loaded,
                                         Registry& registry, const RunOptions& options,
                                         const std::vector<std::string>& allowed, RunObserver& observer);

}  // namespace stiefel
