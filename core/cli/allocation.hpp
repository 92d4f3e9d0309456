/// The program's own malloc and its relatives, which the program and its plugins use; builds with sanitizers keep theirs.
#pragma once

namespace stiefel::cli {

/// A function that returns the allocations of the calling thread so far, except those in OpenBLAS. Null where the program
/// has no malloc of its own.
[[gnu::weak]] long (*allocation_counter() noexcept)();

}  // namespace stiefel::cli
