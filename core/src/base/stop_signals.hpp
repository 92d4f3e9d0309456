/// Signals as noted by their handlers.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>

namespace stiefel {

struct StopSignals {
  using Clock = std::chrono::steady_clock;

  std::atomic<int> stop{0};           ///< number of the last signal to stop
  std::atomic<bool> insisted{false};  ///< it came more than a second after the first one, so it is not its echo
  std::atomic<bool> save{false};      ///< a checkpoint is wanted
  std::atomic<Clock::rep> first{0};   ///< time of the first signal to stop

  /// To be called by the handler of a signal to stop. The kernel repeats SIGXCPU after every further CPU second.
  void stop_by(int number, Clock::time_point now = Clock::now()) noexcept {
    stop = number;
    Clock::rep before = 0;
    if (first.compare_exchange_strong(before, now.time_since_epoch().count()) || number == SIGXCPU) return;
    if (now - Clock::time_point(Clock::duration(before)) > std::chrono::seconds(1)) insisted = true;
  }
};

}  // namespace stiefel
