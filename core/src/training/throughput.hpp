// The rate of work that several threads do at once.
#pragma once

#include <algorithm>
#include <vector>

#include <stiefel/index.hpp>

#include "engine/workers.hpp"
#include "training/clock.hpp"

namespace stiefel {

struct Rate {
  double median = 0, slowest = 0, fastest = 0;  // per second, all threads together
  Index repeats = 0;
};

/// Measures job(thread), which does `work` operations or bytes, in all threads at once, for about `seconds` and at
/// least three times after a warm-up. A job should take some milliseconds, so that starting and joining threads is
/// negligible.
template <class Job> Rate measure_rate(Workers& workers, double work, double seconds, const Job& job) {
  std::vector<double> rates;
  const auto begin = Clock::now();
  for (Index repeat = 0; repeat < 4 || seconds_since(begin) < seconds; ++repeat) {
    const auto start = Clock::now();
    workers.run(workers.threads(), job);
    if (repeat > 0) rates.push_back(work * workers.threads() / seconds_since(start));
  }
  return {median(rates), std::ranges::min(rates), std::ranges::max(rates), Index(rates.size())};
}

}  // namespace stiefel
