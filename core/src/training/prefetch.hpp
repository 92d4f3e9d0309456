// Batches of a split in order. A separate thread fills the next one while the present one is used.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include <stiefel/task.hpp>

#include "training/watchdog.hpp"

namespace stiefel {

template <class S> class Prefetch {
 public:
  /// Provides the batches `first` to `end` − 1. The watchdog watches the destructor, which waits for the last fill().
  Prefetch(const Task<S>& task, Split split, Index first, Index end, Watchdog& watchdog)
      : watchdog_(watchdog), task_(task), split_(split), next_(first), end_(end), thread_([this](std::stop_token stop) {
          work(stop);
        }) {}
  ~Prefetch() {
    thread_.request_stop();
    changed_.notify_all();
    watchdog_.watch([&] { thread_.join(); });
  }

  /// Returns the next batch, which is valid until the following call. Rethrows an exception of Task::fill().
  const Batch<S>& next() {
    std::unique_lock lock(mutex_);
    changed_.notify_all();
    changed_.wait(lock, [this] { return ready_ || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    std::swap(front_, back_);
    ready_ = false;
    changed_.notify_all();
    return front_;
  }

 private:
  void work(std::stop_token stop) {
    for (; next_ < end_; ++next_) {
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [this] { return !ready_; })) return;
      }
      try {
        task_.fill(split_, next_, back_);
      } catch (...) {
        std::unique_lock lock(mutex_);
        failure_ = std::current_exception();
        changed_.notify_all();
        return;
      }
      std::unique_lock lock(mutex_);
      ready_ = true;
      changed_.notify_all();
    }
  }

  Watchdog& watchdog_;
  const Task<S>& task_;
  Split split_;
  Index next_, end_;
  Batch<S> front_, back_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool ready_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace stiefel
