// An existing run, as opened by the commands whose argument is its folder.
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
/// argument, or if a later one is neither a folder nor, with `settings`, key.path=value. Throws Error with the runs if
/// there are several.
std::filesystem::path named_run(const Arguments& arguments, const std::string& usage, bool settings = false);
/// Like named_run(), but throws Error if the folder has no config.yaml.
std::filesystem::path run_folder(const Arguments& arguments, const std::string& usage, bool settings = false);

/// The file of the network that --last or --step chooses, by default the best one. Throws Error if it is not there, or
/// if the run's config.yaml has changed.
std::filesystem::path chosen_network(const std::filesystem::path& run, const Arguments& arguments);

/// The split that --split names, by default the test set.
Split chosen_split(const Arguments& arguments);

/// Whether keys of the task are given after the folder of a run.
bool changes_task(const Arguments& arguments);

/// Makes `options` look for files where the run was started: data sets unless --data is given, and relative paths in
/// its experiment unless keys of its task are given now. Folders that cannot be entered are not used.
void look_where_it_was_started(const std::filesystem::path& run, const Arguments& arguments, RunOptions& options);

/// The experiment of a run, with `overrides`, and where it was started. Throws Error if config.yaml has changed. Used
/// directly only by `resume`, which compares plugins and data with those of the run itself.
struct LoadedRun {
  LoadedRun(const std::filesystem::path& run, const Arguments& arguments, const std::vector<std::string>& overrides,
            RunOptions with = {});

  std::filesystem::path folder;
  Registry registry;
  LoadedExperiment loaded;
  RunOptions options;
};

/// A LoadedRun for every other command: it warns about plugins that were rebuilt since the run was made, and `options`
/// refuse data that have changed since, or warn of them if they have what the network keeps of its task.
struct OpenedRun : LoadedRun {
  OpenedRun(const std::filesystem::path& run, const Arguments& arguments,
            const std::vector<std::string>& overrides = {"threads=1"}, RunOptions with = {});

  RunData made;  // the header of its results
};

}  // namespace stiefel::cli
