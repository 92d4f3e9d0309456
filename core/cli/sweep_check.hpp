// Checks whether experiments can be built, for `validate` and for `sweep run` before it trains.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>

#include "sweep/sweep.hpp"

#include "cli/command_table.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {

/// Builds the experiment without training it. Returns which missing data prevent a full check; empty if none do.
std::string missing_data(const LoadedExperiment& loaded, Registry& registry, const Arguments& arguments,
                         const std::function<void(const std::string&)>& warn = print_warning);

/// A visitor for load_sweep() that checks whether each run of a sweep can be built. Of runs that differ only in the
/// seed, it checks one.
class SweepCheck {
 public:
  /// After `limit`, no further run is checked.
  SweepCheck(std::string file, Registry& registry, const Arguments& arguments, std::chrono::seconds limit);

  void operator()(const LoadedExperiment& loaded, const SweepRun& run, const Sweep& sweep);

  /// Prints the errors that were found. Returns how many there are.
  std::size_t tell_errors() const;
  /// Prints the errors and their number, if there are any. Returns the exit code.
  int finish() const;
  /// The missing data that prevent a full check; empty if none do.
  const std::string& missing() const { return missing_; }
  /// How many kinds of runs were checked if there was no time for all, else 0.
  std::size_t left_off_after() const { return left_off_ ? checked_.size() : 0; }

 private:
  using Clock = std::chrono::steady_clock;

  std::string file_;
  Registry& registry_;
  const Arguments& arguments_;
  Clock::time_point end_;
  std::set<std::string> checked_, said_;
  std::string missing_, errors_;
  std::size_t count_ = 0;
  int code_ = int(Exit::done);
  bool left_off_ = false;
};

}  // namespace stiefel::cli
