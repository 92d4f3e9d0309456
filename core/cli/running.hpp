// What `run` and `resume` have in common: signals, options, the last two lines.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "host/registry.hpp"
#include "training/trainer.hpp"

#include "cli/command_table.hpp"

namespace stiefel::cli {

/// The registry of a command; warnings go to stderr.
Registry found_plugins(const std::vector<std::filesystem::path>& extra = {});
void print_warning(const std::string& sentence);

/// The folder of a run, as given by a user; throws Error if it is not one.
std::filesystem::path run_folder(const std::string& name);

/// When a worker of a sweep started this process: it stops, with a checkpoint, when the worker is gone.
void follow_worker();

/// SIGINT, SIGTERM, SIGHUP and SIGXCPU are to stop, SIGUSR1 is to save unless `on_save` is null; after nohup, SIGHUP
/// stays ignored. They come through even if the parent had blocked them.
void catch_signals(void (*on_stop)(int), void (*on_save)(int) = nullptr);

/// Data folder and command line; from here on SIGINT, SIGTERM and SIGHUP stop after the step, the second one at once,
/// and SIGUSR1 asks for a checkpoint.
RunOptions running_options(const Arguments& arguments, const std::string& command, std::span<const std::string> words);

/// Prints how it ended; returns the exit code.
int report(const RunSummary& summary);

/// Calls work(observer), which trains with `options` and returns how that ended, and reports it; with --mpi together
/// with the other processes that mpirun has started, of which only the first one prints.
int train(const Arguments& arguments, RunOptions& options, const std::function<RunSummary(RunObserver&)>& work);

}  // namespace stiefel::cli
