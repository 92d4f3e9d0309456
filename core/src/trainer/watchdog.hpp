// Ends a process whose work does not come back, e.g. in a plugin that never returns.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace stiefel {

class Watchdog {
 public:
  /// `overdue` is called once, in another thread, when a watch has lasted longer; it must end the process. A watch that ends meanwhile does
  /// not return before it. 0: nothing is watched.
  Watchdog(double seconds, std::function<void()> overdue) : limit_(std::min(seconds, 1e9)), overdue_(std::move(overdue)) {
    if (seconds > 0) thread_ = std::jthread([this](std::stop_token stop) { work(stop); });
  }

  template <class F> decltype(auto) watch(F&& work) {
    set(Clock::now() + std::chrono::duration_cast<Clock::duration>(limit_));
    struct End {
      Watchdog& dog;
      ~End() { dog.set(std::nullopt); }
    } end{*this};
    return std::forward<F>(work)();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void set(std::optional<Clock::time_point> deadline) {
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
        const Clock::time_point until = *deadline_;
        changed_.wait_until(lock, stop, until, [&] { return deadline_ != until; });
      }
    }
  }

  std::chrono::duration<double> limit_;  // below what the clock can count
  std::function<void()> overdue_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Clock::time_point> deadline_;
  std::jthread thread_;
};

}  // namespace stiefel
