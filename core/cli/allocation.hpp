/// The malloc and its relatives that the program and its plugins use. Builds with sanitizers keep the sanitizer's.
#pragma once

namespace stiefel::cli {

/// Returns a function that returns how many allocations the calling thread has made so far, except those in OpenBLAS.
/// The symbol is null in a build that keeps another malloc.
[[gnu::weak]] long (*allocation_counter() noexcept)();

}  // namespace stiefel::cli
