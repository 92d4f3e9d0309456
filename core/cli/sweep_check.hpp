// Whether experiments can be built: what `validate` checks, and `sweep run` before it trains.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>

#include "sweep/sweep.hpp"

#include "cli/command_table.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {

/// Builds the experiment without training it, and returns the missing data that prevent a full check; empty if there are
/// none.
std::string missing_data(const LoadedExperiment& loaded, Registry& registry, const Arguments& arguments,
                         const std::function<void(const std::string&)>& warn = print_warning);

/// Whether each run of a sweep can be built; of runs that differ in the seed alone, one is. Give it to load_sweep().
class SweepCheck {
 public:
  /// It checks no further run after `limit`.
  SweepCheck(std::string file, Registry& registry, const Arguments& arguments, std::chrono::seconds limit);

  void operator()(const LoadedExperiment& loaded, const SweepRun& run, const Sweep& sweep);

  /// Prints the errors that were found; returns how many.
  std::size_t tell_errors() const;
  /// Prints the errors, if there are any, and their number; returns the exit code.
  int finish() const;
  /// The missing data that prevent a full check; empty if there are none.
  const std::string& missing() const { return missing_; }
  /// How many kinds of runs were checked, if there was no time for all; else 0.
  std::size_t left_off_after() const { return in_time() ? 0 : checked_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  bool in_time() const { return Clock::now() < end_; }

  std::string file_;
  Registry& registry_;
  const Arguments& arguments_;
  Clock::time_point end_;
  std::set<std::string> checked_, said_;
  std::string missing_, errors_;
  std::size_t count_ = 0;
  int code_ = int(Exit::done);
};

}  // namespace stiefel::cli
