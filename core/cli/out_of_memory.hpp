/// What happens when memory cannot be had.
#pragma once

#include <atomic>

namespace stiefel::cli {

/// Where the sentence goes beside stderr: the descriptor of a run's log.txt, or −1.
extern std::atomic<int> log_of_run;

/// Ends the program with one sentence and Exit::exhausted, needing no memory itself and undoing nothing: the last checkpoint is there.
[[noreturn]] void end_out_of_memory() noexcept;

}  // namespace stiefel::cli
