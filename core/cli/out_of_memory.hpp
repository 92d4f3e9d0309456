/// What happens when memory cannot be had.
#pragma once

namespace stiefel::cli {

/// Ends the program with one sentence and Exit::exhausted, needing no memory itself and undoing nothing: the last checkpoint is there.
[[noreturn]] void end_out_of_memory() noexcept;

}  // namespace stiefel::cli
