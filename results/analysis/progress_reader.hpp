/// Reads what progress.jsonl and log.txt say about a run, repeatedly while they grow, without HDF5.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

/// One line of progress.jsonl; NaN and −1 for what it does not contain.
struct ProgressLine {
  std::int64_t step = -1, steps = -1;
  double seconds = std::numeric_limits<double>::quiet_NaN();  ///< of the run, by a clock that does not jump
  double step_seconds = seconds, loss = seconds, best = seconds;
  bool resumed = false;  ///< whether the line says after which step the run was resumed
};

/// Parses a line. Returns nothing unless it is a JSON object with a step or "resumed_after".
STIEFEL_API std::optional<ProgressLine> parse_progress(std::string_view line);

class STIEFEL_API ProgressReader {
 public:
  explicit ProgressReader(std::filesystem::path run) : run_(std::move(run)) {}

  /// Reads what was added since the last call. Incomplete lines are left for the next call; damaged ones and those of
  /// another run are skipped.
  void update();

  const std::filesystem::path& run() const { return run_; }
  /// running, finished, failed, diverged, stopped (unfinished, and no process works on it), waiting (the folder does
  /// not exist yet) or unreadable.
  const std::string& state() const { return state_; }
  /// The latest value of each quantity.
  const ProgressLine& latest() const { return latest_; }
  /// At most 1,024 losses in the order of the steps: long runs keep every second, fourth … one.
  const std::vector<double>& losses() const { return losses_; }
  /// Estimated seconds until the last step, at the speed since the run was started or resumed, evaluations included;
  /// NaN if unknown.
  double seconds_left() const;

 private:
  void add(const ProgressLine& line);
  void read_state();

  std::filesystem::path run_;
  std::string state_, pending_;
  std::uintmax_t position_ = 0;
  ProgressLine first_, timed_, latest_;  // first_, timed_: the first and the last line of this process with seconds
  std::vector<double> losses_;
  std::size_t stride_ = 1, seen_ = 0;
};

/// Estimated seconds until all runs have ended, if as many run at a time as now and waiting ones take as long as the
/// others; NaN if none is running.
STIEFEL_API double seconds_left(std::span<const ProgressReader* const> runs);

}  // namespace stiefel
