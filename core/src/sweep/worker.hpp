// A worker takes free runs of a sweep, as many at a time as it has places, until none is left. Any number of workers,
// on any hosts that share the folder, may work on a sweep: each run is claimed by a lock in claims/ID, which names its
// owner and is touched while the owner lives. The claim of a dead process, or of one on another host that has not
// touched it for a time, is taken over.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <string>

#include "base/stop_signals.hpp"
#include "sweep/state.hpp"
#include "sweep/sweep.hpp"

namespace stiefel {

struct WorkerOptions {
  int jobs = 1;     ///< runs at a time
  int threads = 0;  ///< of each; 0: an equal share of the cores
  std::chrono::seconds patience = usual_patience;
  bool fail_fast = false;
  Index until = 0;              ///< step after which the runs stop; 0: train to their end
  std::string only;             ///< id of the one run to do; empty: all
  std::set<std::string> among;  ///< ids of the runs to do; empty: all
  std::string data_directory;   ///< given to the runs, if not empty
};

/// Works until no worker has anything left to do, or until a signal or `stiefel sweep cancel`, which stops its runs
/// with a checkpoint. Calls `say` with a line for each run that ends. Returns the exit code of the program: 0 if every
/// run is finished, that of the first failed run, 75 if runs are left, 7 if the only run belongs to another process,
/// 128 + the signal.
STIEFEL_API int work_on(const SweepFolder& folder, const WorkerOptions& options, StopSignals& signals,
                        const std::function<void(const std::string&)>& say);

}  // namespace stiefel
