// Ends a process whose work does not come back, e.g. in a plugin that never returns.
#pragma once

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
  Watchdog(double seconds, std::function<void()> overdue) : limit_(seconds), overdue_(std::move(overdue)) {
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
        changed_.wait_until(lock, stop, *deadline_, [this, set = deadline_] { return deadline_ != set; });
      }
    }
  }

  std::chrono::duration<double> limit_;
  std::function<void()> overdue_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Clock::time_point> deadline_;
  std::jthread thread_;
};

}  // namespace stiefel
