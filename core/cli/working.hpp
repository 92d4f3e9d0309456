// What `sweep` and `worker` have in common: options, signals, the last line.
#pragma once

#include "sweep/worker.hpp"

#include "cli/command_table.hpp"

namespace stiefel::cli {

WorkerOptions worker_options(const Arguments& arguments);

/// Works on the sweep and prints its state to stdout afterwards, unless it was asked for one run; from here on SIGINT,
/// SIGTERM and SIGHUP stop the runs after their step, the second one at once, and SIGUSR1 and SIGUSR2 ask them for
/// checkpoints.
int work(const SweepFolder& folder, const Arguments& arguments);
/// The same with these options, and without the last lines.
int do_runs(const SweepFolder& folder, const WorkerOptions& options, bool quiet);

/// Allows another attempt of those that failed.
void forget_failures(const SweepFolder& folder, const std::vector<SweepRun>& runs, const LockPatience& patience);

/// Notes in a plan where its workers are to start the runs: here, and with these data.
void keep_places(Sweep& sweep, const Arguments& arguments);

/// Warns of runs of sweeps in these folders that failed before they had results, so that no table shows them.
void warn_of_failures(const std::vector<std::string>& folders);

/// "24 runs: 20 finished, 2 running, 1 waiting, 1 failed".
std::string summary(const std::vector<RunLook>& looks);

}  // namespace stiefel::cli
