// Ends a process that a signal has asked to stop, but whose work does not return.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace stiefel {

class StopDeadline {
 public:
  using Seconds = std::chrono::duration<double>;

  /// After a signal, work has `least` or, if that is more, ten times as long as any work took before. Then
  /// overdue(signal, seconds since then) is called once, in another thread, and must end the process; working() does
  /// not return meanwhile. Time does not count while the whole process is stopped.
  StopDeadline(const std::atomic<int>* signal, Seconds least, std::function<void(int, double)> overdue,
               Seconds glance = Seconds(0.5)) {
    if (signal)
      thread_ = std::jthread([this, signal, least, overdue = std::move(overdue), glance](const std::stop_token& stop) {
        work(stop, *signal, least, overdue, glance);
      });
  }

  /// To be called when work begins, and when it has ended.
  void working(bool begins) {
    if (!thread_.joinable()) return;
    const std::scoped_lock lock(mutex_);
    working_ = begins;
    ++changes_;
  }

 private:
  void work(const std::stop_token& stop, const std::atomic<int>& signal, Seconds least,
            const std::function<void(int, double)>& overdue, Seconds glance) {
    std::unique_lock lock(mutex_);
    Seconds worked{}, asked{}, longest{};
    for (unsigned long seen = 0; asked < std::max(least, 10 * longest);) {
      pause_.wait_for(lock, stop, glance, [] { return false; });
      if (stop.stop_requested()) return;
      if (std::exchange(seen, changes_) != changes_) longest = std::max(longest, std::exchange(worked, {})), asked = {};
      if (!working_) continue;
      worked += glance;
      if (signal != 0) asked += glance;
    }
    overdue(signal, asked.count());
  }

  std::mutex mutex_;
  std::condition_variable_any pause_;
  bool working_ = false;
  unsigned long changes_ = 0;
  std::jthread thread_;
};

}  // namespace stiefel
