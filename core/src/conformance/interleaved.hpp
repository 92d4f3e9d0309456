// Two threads in one object at once, wherever the first one may be: what a race needs, on any number of cores.
#pragma once

#include <functional>

namespace stiefel::conformance {

/// Runs `first` again and again in one thread. Another thread stops it at random moments, runs `second` from beginning
/// to end, and lets it continue. Neither may throw.
void interleave(const std::function<void()>& first, const std::function<void()>& second);

}  // namespace stiefel::conformance
