#include "conformance/effects.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <thread>

#include "base/printable.hpp"

namespace stiefel::conformance {
namespace {

std::size_t thread_count() {
  std::error_code gone;
  return std::size_t(std::distance(std::filesystem::directory_iterator("/proc/self/task", gone), {}));
}

bool has_children() {
  siginfo_t ended{};
  return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

std::size_t allocated_bytes() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

Effects::Effects(CheckReport& report) : report_(report), threads_(thread_count()) {
  std::cout.flush();
  std::fflush(stdout);
  printed_ = memfd_create("stiefel-check-output", MFD_CLOEXEC);
  constexpr int out_of_reach = 200;  // of a loop over the first descriptors
  output_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, out_of_reach);
  if (printed_ >= 0 && output_ >= 0) dup2(printed_, STDOUT_FILENO);
  before_.emplace();
  descriptors_ = open_descriptors();
  report_.require("process", true, "");
}

Effects::~Effects() {
  std::cout.flush();
  std::fflush(stdout);
  if (printed_ >= 0 && output_ >= 0 && dup2(output_, STDOUT_FILENO) < 0) dup2(STDERR_FILENO, STDOUT_FILENO);
  for (const int descriptor : {printed_, output_})
    if (descriptor >= 0) close(descriptor);
}

std::string Effects::printed() {
  std::cout.flush();
  std::fflush(stdout);
  std::string text(200, '\0');
  const ssize_t count = pread(printed_, text.data(), text.size(), 0);
  text.resize(count > 0 ? std::size_t(count) : 0);
  return text.substr(0, text.find('\n'));
}

void Effects::finish() {
  report_.at({});
  if (const std::vector<std::string> changed = before_->changes(); !changed.empty()) {
    before_->restore();
    report_.fail("process", fmt::format("a call changes {}, for the whole program: put it back before the call returns",
                                        fmt::join(changed, ", ")));
  }
  const auto left_alone = [&] { return thread_count() <= threads_; };
  for (int k = 0; k < 100 && !left_alone(); ++k) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  report_.require("process", left_alone(), "a thread still runs after all objects are gone: join it in the destructor");
  report_.require("process", !has_children(),
                  "a process is left after all objects are gone: end it and wait for it in the destructor");
  std::set<int> now = open_descriptors(), opened;
  std::ranges::set_difference(now, descriptors_, std::inserter(opened, opened.end()));
  report_.require("process", opened.empty(),
                  fmt::format("{} files are still open after all objects are gone: close them", opened.size()));
  if (const std::string text = printed(); !text.empty())
    report_.fail("process", fmt::format("it prints to standard output, which belongs to results: \"{}\"; throw "
                                        "stiefel::Error, or print to std::cerr",
                                        printable(text)));
}

Effects::Call::Call(Effects* effects, const char* verb) : effects_(effects), verb_(verb) {
  constexpr int compared = 3;
  if (effects_ && (effects_->calls_[verb]++ < compared || verb == std::string_view("create"))) before_.emplace();
}

Effects::Call::~Call() {
  if (!before_) return;
  const std::vector<std::string> changed = before_->changes();
  if (changed.empty()) return;
  before_->restore();
  effects_->report_.fail(
      "process", fmt::format("{}() changes {}, for the whole program: put it back before the call returns", verb_,
                             fmt::join(changed, ", ")));
}

}  // namespace stiefel::conformance
