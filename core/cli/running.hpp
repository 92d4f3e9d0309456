// What several commands share: plugins, warnings, signals, and the training and report of a run.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "host/registry.hpp"
#include "training/run.hpp"

#include "cli/command_table.hpp"

namespace stiefel::cli {

/// The plugins that a command can use. Warnings about them go to stderr.
Registry found_plugins(const std::vector<std::filesystem::path>& extra = {});
void print_warning(const std::string& sentence);

/// Whether a file holds methods in Python, which the plugin `python` runs.
inline bool is_script(const std::string& file) { return file.ends_with(".py"); }
/// The option that names this script to the plugin `python`, as KEY=VALUE.
std::string option_of_script(const std::string& file);
/// The methods of the plugin `python` that a script has. If it has none, those of one role, which say why.
std::vector<const Entry*> methods_of_script(const Registry& registry, const std::string& file);

/// If a worker of a sweep started this process, makes it stop with a checkpoint when the worker ends.
void follow_worker();
/// Throws Error if a worker of a sweep started this process for a run with another id.
void demand_planned_run(const std::string& id, const std::string& file);

/// A function for RunOptions::check_data. A network of model.init_file without a recorded checksum is first read by
/// another process, which it may crash. Throws Error (Exit::damaged) if that process cannot read it.
void demand_readable_networks(const std::vector<DataFile>& files);

/// Makes SIGINT, SIGTERM, SIGHUP and SIGXCPU call on_stop, and SIGUSR1 and SIGUSR2 call on_save unless it is null. Also
/// unblocks them, in case the parent had blocked them. After nohup, SIGHUP stays ignored.
void catch_signals(void (*on_stop)(int), void (*on_save)(int) = nullptr);

/// Ends the line on which a terminal shows ^C, if the signal is SIGINT. For use in signal handlers.
void end_line_after_interrupt(int number);

/// The options of `run`, `resume` and `repeat` from the command line. From here on, SIGINT, SIGTERM, SIGHUP and SIGXCPU
/// stop the run after its step (the second one at once), and SIGUSR1 and SIGUSR2 request a checkpoint.
RunOptions running_options(const Arguments& arguments, Ranks& ranks, const std::string& command,
                           std::span<const std::string> words);

/// Prints how the run ended. Returns the exit code.
int report(const RunSummary& summary);

/// Calls work(ranks) in this process or, with --mpi, in each process that mpirun has started. A rank that fails ends
/// the others. If all fail with the same error, only the first reports it.
int with_ranks(const Arguments& arguments, const std::function<int(Ranks&)>& work);

/// Calls work(observer), which trains with `options` and returns how that ended, and reports it. Only the first rank
/// prints.
int train_observed(const Arguments& arguments, const RunOptions& options,
                   const std::function<RunSummary(RunObserver&)>& work);

}  // namespace stiefel::cli
