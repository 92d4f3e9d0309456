#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "training/stop_deadline.hpp"
#include "training/watchdog.hpp"

using namespace stiefel;

TEST_CASE("a watch that ends while its limit is being dealt with returns after that") {
  std::atomic<bool> called = false, dealt_with = false;
  Watchdog watchdog(0.01, [&] {
    called = true;
    called.notify_one();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    dealt_with = true;
  });
  watchdog.watch([&] { called.wait(false); });
  CHECK(dealt_with);
}

TEST_CASE("time in which the whole process is stopped is not counted by the watchdog") {
  int told[2];
  REQUIRE(pipe(told) == 0);
  const pid_t child = fork();
  if (child == 0) {
    Watchdog watchdog(3, [] { _exit(3); });
    char byte = 0;
    const bool read_one = watchdog.watch([&] { return read(told[0], &byte, 1) == 1; });
    _exit(read_one ? 0 : 4);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(child, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  kill(child, SIGCONT);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(write(told[1], "x", 1) == 1);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  close(told[0]), close(told[1]);
}

TEST_CASE("after a signal, only work that hangs is ended, and not before ten times the longest work") {
  using Seconds = StopDeadline::Seconds;
  const auto pause = [](double seconds) { std::this_thread::sleep_for(Seconds(seconds)); };
  std::atomic<int> signal = 0, called = 0;
  StopDeadline deadline(
      &signal, Seconds(0.2), [&](int number, double) { called = number; }, Seconds(0.01));
  deadline.working(true);
  pause(0.5);  // without a signal, nothing counts
  deadline.working(false);
  signal = SIGTERM;
  pause(0.5);  // nor what is no work
  for (int step = 0; step < 10; ++step) {
    deadline.working(true);
    pause(0.05);
    deadline.working(false);
  }
  deadline.working(true);
  pause(1);  // 0.2 s, but not ten times the 0.5 s of the first work
  CHECK(called == 0);
  for (int i = 0; i < 6000 && called == 0; ++i) pause(0.01);
  CHECK(called == SIGTERM);
}
