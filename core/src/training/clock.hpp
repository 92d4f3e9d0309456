// The clock that times steps.
#pragma once
#include <algorithm>
#include <chrono>
#include <vector>

namespace stiefel {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Returns the median, the upper one for an even number of values. There must be at least one value.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace stiefel
