// What the commands that work on sweeps share: options, signals and the last lines.
#pragma once

#include <span>

#include "results/analysis/progress_reader.hpp"
#include "sweep/worker.hpp"

#include "cli/command_table.hpp"

namespace stiefel::cli {

WorkerOptions worker_options(const Arguments& arguments);

/// Works on the sweep and then prints its state to stdout, unless it was asked for one run. Signals act as with
/// do_runs().
int work(const SweepFolder& folder, const Arguments& arguments);
/// Works on the sweep with these options. From here on, SIGINT, SIGTERM, SIGHUP and SIGXCPU stop the runs after their
/// step (the second one at once), and SIGUSR1 and SIGUSR2 request checkpoints. Throws Error if the sweep was canceled.
int do_runs(const SweepFolder& folder, const WorkerOptions& options, bool quiet);

/// Allows another attempt of those of the runs that failed.
void forget_failures(const SweepFolder& folder, const std::vector<SweepRun>& runs, const LockPatience& patience);

/// Stores in a plan where its workers start the runs: in the current folder, with the data of --data.
void keep_places(Sweep& sweep, const Arguments& arguments);

/// Warns about runs of sweeps in these folders that failed before they had results, because no table shows them.
void warn_of_failures(const std::vector<std::string>& folders);

/// "24 runs: 20 finished, 2 running, 1 waiting, 1 failed".
std::string summary(const std::vector<RunLook>& looks);
/// ", about 8 min 20 s left"; empty if that is not known.
std::string time_left(std::span<const ProgressReader* const> runs);

}  // namespace stiefel::cli
