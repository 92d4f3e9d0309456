// The states of the runs of a sweep: from their folders, claims and failures.
#pragma once

#include <string>
#include <vector>

#include "record/run_lock.hpp"
#include "sweep/sweep.hpp"

namespace stiefel {

enum class SweepState {
  waiting,  ///< not started
  stopped,  ///< started, and no process works on it
  at_rung,  ///< halving: waits for the others
  running,  ///< a living process holds its claim or its folder
  finished,
  diverged,
  failed,
  left_out,  ///< excluded by halving
};
STIEFEL_API const char* name_of(SweepState state);

struct RunLook {
  SweepState state = SweepState::waiting;
  Index step = 0;       ///< step up to which the run's results are stored
  std::string message;  ///< how it ended
  int exit_code = 0;    ///< of a run that diverged or failed

  /// Whether the run lacked data, disk space or memory, which another host, or this one later, may have.
  bool lacked_something() const {
    return state == SweepState::failed && (exit_code == int(Exit::data) || exit_code == int(Exit::exhausted));
  }
  bool broke() const { return state == SweepState::diverged || state == SweepState::failed; }
  bool ended() const { return state == SweepState::finished || broke(); }
};

/// Reads the run's folder and the record of its failure, but not its claim.
STIEFEL_API RunLook look_at(const SweepFolder& folder, const SweepRun& run, const LockPatience& patience);
/// Returns the states of all runs, with claims and halving.
STIEFEL_API std::vector<RunLook> look_at_all(const SweepFolder& folder, const LockPatience& patience);

/// Records that a run diverged or failed; forget_failure() allows another attempt.
void record_failure(const SweepFolder& folder, const SweepRun& run, int exit_code, const std::string& message);
STIEFEL_API bool forget_failure(const SweepFolder& folder, const SweepRun& run);

}  // namespace stiefel
