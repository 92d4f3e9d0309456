// Ends a process that a signal has asked to stop, and that hangs.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "training/clock.hpp"

namespace stiefel {

class StopDeadline {
 public:
  /// `overdue` is called once, in another thread, with the number of the signal and the seconds without a beat since
  /// then; it must end the process. Time does not count while the whole process is stopped.
  StopDeadline(const std::atomic<int>* signal, std::function<void(int, double)> overdue) {
    if (signal)
      thread_ = std::jthread(
          [this, signal, overdue = std::move(overdue)](const std::stop_token& stop) { work(stop, *signal, overdue); });
  }

  /// A part of the work has ended: a step, a batch of an evaluation, a checkpoint. The next beat may take 30 s or, if
  /// that is more, ten times the longest one.
  void beat() {
    longest_ = std::max(longest_.load(), seconds_since(last_));
    last_ = Clock::now();
    ++beats_;
  }

 private:
  void work(const std::stop_token& stop, const std::atomic<int>& signal,
            const std::function<void(int, double)>& overdue) {
    constexpr std::chrono::duration<double> glance{0.5};
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any pause;
    double waited = 0;
    for (unsigned long seen = 0; waited < std::max(30., 10 * longest_);) {
      pause.wait_for(lock, stop, glance, [] { return false; });
      if (stop.stop_requested()) return;
      waited = signal == 0 || std::exchange(seen, beats_.load()) != beats_ ? 0 : waited + glance.count();
    }
    overdue(signal, waited);
  }

  std::atomic<unsigned long> beats_{0};
  std::atomic<double> longest_{0};
  Clock::time_point last_ = Clock::now();
  std::jthread thread_;
};

}  // namespace stiefel
