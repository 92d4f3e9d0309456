// How long each phase of a training takes.
#pragma once

#include <utility>
#include <vector>

#include "training/clock.hpp"

namespace stiefel {

enum class Phase { data, param_map, passes, optimizer, record, evaluate };
inline constexpr const char* phase_names[] = {"data", "param_map", "passes", "optimizer", "record", "evaluate"};

class Stopwatch {
 public:
  template <class F> decltype(auto) time(Phase phase, F&& work) {
    struct Stop {
      double& sum;
      Clock::time_point start = Clock::now();
      ~Stop() { sum += seconds_since(start); }
    } stop{seconds_[std::size_t(phase)]};
    return std::forward<F>(work)();
  }
  /// Returns the seconds of each phase since the last call.
  std::vector<double> take() { return std::exchange(seconds_, none()); }

 private:
  static std::vector<double> none() { return std::vector<double>(std::size(phase_names), 0.0); }

  std::vector<double> seconds_ = none();
};

}  // namespace stiefel
