// A sweep: its runs with the configuration of each, from a file or from the folder that it was planned into.
//
//   sweeps/NAME/sweep.yaml       the experiment as it was written
//               sweep.json       name, halving, folders in which workers start the runs
//               runs.tsv         a line for each run: id, and the values of the keys that differ
//               configs/ID.yaml  every key of a run
//               runs/NAME/ID/    the run's folder, as `stiefel run configs/ID.yaml` creates it
//               claims/ID/lock   the process that works on it
//               failed/ID.json   how it failed
//               rungs/STEP.tsv   halving: which runs continued, and their values
//               cancelled        present while workers must not take runs
//               slurm/           job scripts, and the output of jobs
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/expand.hpp"
#include "config/load.hpp"

namespace stiefel {

struct Halving {
  std::string metric;
  Index factor = 3;
  std::vector<Index> rungs;  ///< steps at which runs are compared
};

struct SweepRun {
  std::string id;
  std::vector<std::string> values;  ///< YAML in one line, one for each key; empty: as in the experiment
  std::string yaml;                 ///< every key; empty when it was read from a folder
};

struct Sweep {
  std::string name, source;
  std::vector<std::string> keys;
  std::vector<SweepRun> runs;    ///< each once
  std::size_t combinations = 0;  ///< of the values in its file; several may mean the same run
  std::optional<Halving> halving;
  std::filesystem::path working_directory = {};  ///< where relative paths of the runs begin; empty: not known
  std::filesystem::path data_directory = {};     ///< that was given for the plan; empty: none
};

/// Called for each run of a sweep, with the places of its keys in the file.
using SweepVisitor = std::function<void(const LoadedExperiment& loaded, const SweepRun& run, const Sweep& sweep)>;

/// Loads the configuration of every run; returns nothing if the file describes a single run. A single Error contains
/// the first problems, one line each, with their places in the file.
STIEFEL_API std::optional<Sweep> load_sweep(const std::filesystem::path& file,
                                            const std::vector<std::string>& overrides, Registry& registry,
                                            const SweepVisitor& visit = {});

/// "key=value, key=value" of a run, except for the key `without`.
STIEFEL_API std::string assignments(const Sweep& sweep, const SweepRun& run, std::string_view without = {});

/// Writes the plan; runs of an older plan that are still in it keep their folders. Throws Error if the folder has a
/// sweep of another name. `command` is noted in sweep.yaml.
STIEFEL_API void write_sweep(const std::filesystem::path& folder, const Sweep& sweep, const std::string& command);
/// Adds the runs of `sweep` to the plan in the folder, which it makes if there is none. Throws Error if the folder has
/// a sweep of another name or with other data.
STIEFEL_API void add_to_sweep(const std::filesystem::path& folder, const Sweep& sweep, const std::string& command);

/// A sweep that was planned. The constructor throws Error if the folder holds none, or (Exit::damaged) a damaged one.
class STIEFEL_API SweepFolder {
 public:
  explicit SweepFolder(std::filesystem::path folder);

  const Sweep& sweep() const { return sweep_; }
  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path config(const SweepRun& run) const { return folder_ / "configs" / (run.id + ".yaml"); }
  std::filesystem::path runs() const { return folder_ / "runs"; }
  std::filesystem::path run(const SweepRun& run) const { return runs() / name(run) / run.id; }
  std::filesystem::path claim(const SweepRun& run) const { return folder_ / "claims" / run.id; }
  std::filesystem::path failure(const SweepRun& run) const { return folder_ / "failed" / (run.id + ".json"); }
  std::filesystem::path rung(Index step) const;
  std::filesystem::path cancelled() const { return folder_ / "cancelled"; }
  /// Throws Error with a suggestion if there is no such run.
  const SweepRun& find(const std::string& id) const;
  /// Folders of runs that runs.tsv does not list, such as those of earlier plans.
  std::vector<std::filesystem::path> other_runs() const;
  /// `key=value, key=value` of a run.
  std::string values(const SweepRun& run) const;

 private:
  /// The name of the experiment, which all runs share unless `name` is a key in which they differ.
  std::string name(const SweepRun& run) const;

  std::filesystem::path folder_;
  Sweep sweep_;
};

}  // namespace stiefel
