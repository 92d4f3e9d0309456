// A run that exists, as the commands open it whose argument is its folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "host/registry.hpp"
#include "results/analysis/run_data.hpp"
#include "training/run.hpp"

#include "cli/command_table.hpp"

namespace stiefel::cli {

/// The one run that the arguments name, by its folder or one above it. Throws Error with `usage` if there is no
/// argument, or one after the first that is neither a folder nor, where the command takes settings, key.path=value; or
/// with the runs if there are several.
std::filesystem::path named_run(const Arguments& arguments, const std::string& usage, bool settings = false);
/// The same if it is a folder with a config.yaml.
std::filesystem::path run_folder(const Arguments& arguments, const std::string& usage, bool settings = false);

/// The file of the network that --last and --step choose, by default of the best one; throws Error if it is not there,
/// or if the run's config.yaml is not what was written.
std::filesystem::path chosen_network(const std::filesystem::path& run, const Arguments& arguments);

/// Whether keys of the task are given after the folder of a run.
bool changes_task(const Arguments& arguments);

/// Without --data, data sets of a run are where they were, and relative paths in its experiment begin where they did,
/// unless keys of its task are given now.
void look_where_it_was_started(const std::filesystem::path& run, const Arguments& arguments, RunOptions& options);

/// The experiment of a run, with `overrides`, and where it was started; throws Error if config.yaml is not what was
/// written. For `resume`, which itself compares the plugins and data with those of the run.
struct LoadedRun {
  LoadedRun(const std::filesystem::path& run, const Arguments& arguments, const std::vector<std::string>& overrides,
            RunOptions with = {});

  std::filesystem::path folder;
  Registry registry;
  LoadedExperiment loaded;
  RunOptions options;
};

/// The same for every other command: it warns of plugins that were rebuilt since the run was made, and `options` refuse
/// data that have changed since.
struct OpenedRun : LoadedRun {
  OpenedRun(const std::filesystem::path& run, const Arguments& arguments,
            const std::vector<std::string>& overrides = {"threads=1"}, RunOptions with = {});

  RunData made;  // the header of its results
};

}  // namespace stiefel::cli
