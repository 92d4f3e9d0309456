// A thread is stopped by a signal, in whose handler it waits.
#include "conformance/interleaved.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <thread>

#include <stiefel/error.hpp>

namespace stiefel::conformance {

namespace {

constexpr int fewest = 100, most = 120;
constexpr std::chrono::milliseconds enough{40}, too_long{2000};
constexpr int longest_wait = 20;  // milliseconds; the stopped thread may hold a lock that the other one needs

/// Counts how often it was raised; all that a signal handler may wait for.
class Event {
 public:
  Event() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (descriptor_ < 0) throw Error("too many open files for the check of threads", Exit::exhausted);
  }
  ~Event() { close(descriptor_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void raise() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(descriptor_, &one, sizeof one);
  }
  void forget() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = read(descriptor_, &count, sizeof count);
  }
  /// False after longest_wait.
  bool wait() const {
    pollfd place{descriptor_, POLLIN, 0};
    if (poll(&place, 1, longest_wait) <= 0) return false;
    std::uint64_t count = 0;
    return read(descriptor_, &count, sizeof count) == sizeof count;
  }

 private:
  int descriptor_;
};

struct Meeting {
  Event stopped, go_on;
};
std::atomic<const Meeting*> meeting;

void on_stop(int) {
  const int error = errno;
  if (const Meeting* at = meeting) {
    at->stopped.raise();
    at->go_on.wait();
  }
  errno = error;
}

/// The handler of SIGURG, which is ignored unless somebody wants it.
class StopSignal {
 public:
  StopSignal() {
    struct sigaction action {};
    action.sa_handler = on_stop;
    action.sa_flags = SA_RESTART;
    sigaction(SIGURG, &action, &before_);
  }
  ~StopSignal() { sigaction(SIGURG, &before_, nullptr); }
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace

void interleave(const std::function<void()>& first, const std::function<void()>& second) {
  const Meeting here;
  const StopSignal handler;
  meeting = &here;
  std::atomic<bool> over = false;
  {
    std::jthread stopped([&] {
      do first();
      while (!over);
    });
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < most && std::chrono::steady_clock::now() - start < (k < fewest ? too_long : enough); ++k) {
      std::this_thread::sleep_for(std::chrono::microseconds(10 + 7 * (k % 13)));
      here.stopped.forget();
      here.go_on.forget();
      pthread_kill(stopped.native_handle(), SIGURG);
      const bool waits = here.stopped.wait();
      second();
      if (waits) here.go_on.raise();
    }
    over = true;
  }
  meeting = nullptr;
}

}  // namespace stiefel::conformance
