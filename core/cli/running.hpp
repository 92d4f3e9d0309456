// What `run` and `resume` have in common: signals, options, the last two lines.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "host/registry.hpp"
#include "results/analysis/run_data.hpp"
#include "training/run.hpp"

#include "cli/command_table.hpp"

namespace stiefel::cli {

/// The registry of a command; warnings go to stderr.
Registry found_plugins(const std::vector<std::filesystem::path>& extra = {});
void print_warning(const std::string& sentence);

/// The one run that the arguments name, by its folder or one above it. Throws Error with `usage` if there is no
/// argument, or one after the first that is neither a folder nor, where the command takes settings, key.path=value; or
/// with the runs if there are several.
std::filesystem::path named_run(const Arguments& arguments, const std::string& usage, bool settings = false);
/// The same if it is a folder with a config.yaml.
std::filesystem::path run_folder(const Arguments& arguments, const std::string& usage, bool settings = false);

/// Warns of each plugin whose file is not the one that the run was made with.
void warn_of_rebuilt_plugins(const RunData& made, const LoadedExperiment& loaded, const Registry& registry);

/// The file of the network that --last and --step choose, by default of the best one; throws Error if it is not there,
/// or if the run's config.yaml is not what was written.
std::filesystem::path chosen_network(const std::filesystem::path& run, const Arguments& arguments);

/// When a worker of a sweep started this process: it stops, with a checkpoint, when the worker is gone.
void follow_worker();
/// Throws Error if a worker of a sweep started this process for a run with another id.
void demand_planned_run(const std::string& id, const std::string& file);

/// Whether keys of the task are given after the folder of a run.
bool changes_task(const Arguments& arguments);

/// For a run that was started before: without --data its data sets are where they were, and relative paths in its
/// experiment begin where they did, unless keys of its task are given now.
void look_where_it_was_started(const std::filesystem::path& run, const Arguments& arguments, RunOptions& options);

/// For RunOptions::check_data: a network of model.init_file that no checksum vouches for is first read by another process, which it may
/// end. Error (Exit::damaged) when that cannot read it.
void demand_readable_networks(const std::vector<DataFile>& files);

/// Commands with these options refuse data that have changed since the run was made, by which a network may read its
/// inputs or name its classes otherwise. Keys of its task that are given now may name other files.
void demand_same_data(const RunData& made, const LoadedExperiment& loaded, const Arguments& arguments,
                      RunOptions& options);

/// SIGINT, SIGTERM, SIGHUP and SIGXCPU are to stop, SIGUSR1 and SIGUSR2 are to save unless `on_save` is null; after
/// nohup, SIGHUP stays ignored. They come through even if the parent had blocked them.
void catch_signals(void (*on_stop)(int), void (*on_save)(int) = nullptr);

/// For a handler of SIGINT: what follows ^C on a terminal starts on its own line.
void end_line_after_interrupt(int number);

/// Data folder and command line; from here on SIGINT, SIGTERM and SIGHUP stop after the step, the second one at once,
/// and SIGUSR1 and SIGUSR2 ask for a checkpoint.
RunOptions running_options(const Arguments& arguments, Ranks& ranks, const std::string& command,
                           std::span<const std::string> words);

/// Prints how it ended; returns the exit code.
int report(const RunSummary& summary);

/// Calls work(ranks) in this process or, with --mpi, in each of those that mpirun has started. An error of all of them
/// is told once, by the first, and one of them ends the others.
int with_ranks(const Arguments& arguments, const std::function<int(Ranks&)>& work);

/// Calls work(observer), which trains with `options` and returns how that ended, and reports it. Only the first of the
/// ranks prints.
int train(const Arguments& arguments, const RunOptions& options, const std::function<RunSummary(RunObserver&)>& work);

}  // namespace stiefel::cli
