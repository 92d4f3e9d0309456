// What a method leaves behind in the process: compared around each constructor, around the first calls of every other function, and over
// the whole check.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "conformance/report.hpp"
#include "host/process_state.hpp"

namespace stiefel::conformance {

/// Reports under "process". While it exists, standard output goes to a file in memory.
class Effects {
 public:
  explicit Effects(CheckReport& report);
  ~Effects();
  Effects(const Effects&) = delete;
  Effects& operator=(const Effects&) = delete;

  /// Compares the process before and after a call, and puts back what it can.
  class Call {
   public:
    Call(Effects* effects, const char* verb);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Effects* effects_;
    const char* verb_;
    std::optional<ProcessState> before_;
  };

  /// When all objects of the method are gone: what is left of threads, processes and descriptors, and what was printed.
  void finish();

 private:
  std::string printed();
  CheckReport& report_;
  std::map<std::string, int> calls_;
  std::optional<ProcessState> before_;
  std::size_t threads_;
  std::set<int> descriptors_;
  int output_ = -1, printed_ = -1;
};

/// Bytes that malloc has handed out; 0 under AddressSanitizer.
std::size_t allocated_bytes();

/// Reported under "growth": f() must not keep more memory with each further call. What malloc sets aside for later, it does a few times
/// only, so one of several rounds must be without growth.
template <class F> void require_no_growth(CheckReport& report, const char* verb, F&& f) {
  constexpr int rounds = 8, calls = 16;
  std::size_t least = std::numeric_limits<std::size_t>::max(), before = allocated_bytes();
  for (int round = 0; round < rounds && least > 0; ++round) {
    for (int k = 0; k < calls; ++k) f();
    const std::size_t after = allocated_bytes();
    least = std::min(least, after > before ? after - before : 0);
    before = after;
  }
  report.require("growth", least < calls * 16,
                 fmt::format("{} keeps {} more bytes with each call: a run makes millions", verb, least / calls));
}

}  // namespace stiefel::conformance
