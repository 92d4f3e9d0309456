// What `run` and `resume` have in common: signals, options, the last two lines.
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

/// The registry of a command; warnings go to stderr.
Registry found_plugins(const std::vector<std::filesystem::path>& extra = {});
void print_warning(const std::string& sentence);

/// When a worker of a sweep started this process: it stops, with a checkpoint, when the worker is gone.
void follow_worker();
/// Throws Error if a worker of a sweep started this process for a run with another id.
void demand_planned_run(const std::string& id, const std::string& file);

/// For RunOptions::check_data: a network of model.init_file that no checksum vouches for is first read by another process, which it may
/// end. Error (Exit::damaged) when that cannot read it.
void demand_readable_networks(const std::vector<DataFile>& files);

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
