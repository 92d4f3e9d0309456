// Ends a process whose work does not return, e.g. because a plugin hangs.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include <stiefel/error.hpp>

#include "training/clock.hpp"
#include "training/stop_deadline.hpp"

namespace stiefel {

/// Ends the process after ten seconds, in case its last writes hang.
inline void end_in_any_case(int exit_code = int(Exit::plugin)) {
  std::thread([exit_code] {
    std::this_thread::sleep_for(std::chrono::seconds(10));
    std::_Exit(exit_code);
  }).detach();
}

class Watchdog {
 public:
  /// Calls `overdue` once, in another thread, when a watch has lasted longer than `seconds` (0: no limit). It must end
  /// the process; the watch does not return meanwhile. Time does not count while the whole process is stopped (SIGSTOP,
  /// Ctrl-Z, a suspended job). After a signal, calls overdue_after(signal, seconds since then) as StopDeadline
  /// describes.
  Watchdog(double seconds, std::function<void()> overdue, const std::atomic<int>* signal = nullptr,
           std::function<void(int, double)> overdue_after = {})
      : limit_(std::min(seconds, 1e9)),
        glance_(std::min(seconds / 10, 1.0)),
        overdue_(std::move(overdue)),
        after_signal_(signal, std::max(limit_, Seconds(30)), std::move(overdue_after)) {
    if (seconds > 0) thread_ = std::jthread([this](std::stop_token stop) { work(stop); });
  }

  template <class F> decltype(auto) watch(F&& work) {
    set(Clock::now() + in_ticks(limit_));
    struct End {
      Watchdog& dog;
      ~End() { dog.set(std::nullopt); }
    } end{*this};
    return std::forward<F>(work)();
  }

 private:
  using Seconds = std::chrono::duration<double>;
  static Clock::duration in_ticks(Seconds seconds) { return std::chrono::duration_cast<Clock::duration>(seconds); }

  void set(std::optional<Clock::time_point> deadline) {
    after_signal_.working(deadline.has_value());
    if (limit_.count() <= 0) return;
    const std::scoped_lock lock(mutex_);
    deadline_ = deadline;
    changed_.notify_one();
  }

  void work(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      if (!deadline_) {
        changed_.wait(lock, stop, [this] { return deadline_.has_value(); });
      } else if (Clock::now() >= *deadline_) {
        return overdue_();
      } else {
        const Clock::time_point until = *deadline_, wake = std::min(until, Clock::now() + in_ticks(glance_));
        if (changed_.wait_until(lock, stop, wake, [&] { return deadline_ != until; })) continue;
        const Clock::duration late = Clock::now() - wake;
        if (late > glance_) *deadline_ += late;  // the process did not run meanwhile
      }
    }
  }

  Seconds limit_, glance_;  // the limit fits into the clock's range
  std::function<void()> overdue_;
  StopDeadline after_signal_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Clock::time_point> deadline_;
  std::jthread thread_;
};

}  // namespace stiefel
