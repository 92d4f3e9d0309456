// Published results beside measured ones: which runs belong to a row, what they came to, and how a row is judged.
//
// A run belongs to a row and a seed when its configuration has the row's hash. A run that was planned for the row belongs to it, too, as
// long as it agrees with every setting that the row's file gives: then a default has changed since. Runs of any build count.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "results/run_data.hpp"
#include "sweep/published.hpp"
#include "sweep/sweep.hpp"

namespace stiefel {

/// One seed of a row: the run that tells most about it.
struct Measurement {
  Index seed = 1;
  std::string state;  ///< finished, running, stopped, diverged, failed, preempted; empty: there is no run
  double value = std::numeric_limits<double>::quiet_NaN();
  double share = 1;         ///< of the published number of steps or epochs
  bool fulfilled = false;   ///< a curve's criterion
  Index reached_step = -1;  ///< reaches: where; −1: it was not
  Index step = 0;           ///< of the last published result
  double cpu_seconds = value;
  std::string commit;  ///< of the program, with "+" when it had changes
  std::filesystem::path run;

  bool counts() const { return state == "finished" && share >= 1; }
};

enum class Verdict {
  none,        ///< no run
  unfinished,  ///< no finished run
  part,        ///< finished with part of the budget
  shown,       ///< finished, and nothing to judge by
  remembered,  ///< finished; the published value is not certain
  diverged,
  matched,
  better,
  missed,
};

struct ReproducedRow {
  const PublishedRow* row;
  std::vector<Measurement> seeds;  ///< one for each of the row's
  Verdict verdict = Verdict::none;
  double mean = std::numeric_limits<double>::quiet_NaN();  ///< over finished runs of the largest share
  double deviation = mean;                                 ///< with n − 1; NaN for one run
  double difference = mean;                                ///< measured less published
  std::size_t count = 0;                                   ///< of these runs
  double share = 1;
  bool higher_is_better = false;
};

/// "matched", "needs whole TIMIT", "stopped at step 500": the state of a row in a few words.
STIEFEL_API std::string state_of(const ReproducedRow& row);
/// What is published: "0.973", or a curve's criterion, "≤ 0.15 by step 5000".
STIEFEL_API std::string published_text(const ReproducedRow& row);
STIEFEL_API std::string measured_text(const ReproducedRow& row);

class STIEFEL_API Reproduction {
 public:
  /// `output`: the folder of runs, which need not be there yet. `timings`: what `tests/bench/run --json` wrote; empty or not there: none.
  Reproduction(const PublishedResults& published, std::filesystem::path output, std::filesystem::path timings, Registry& registry)
      : published_(published), output_(std::move(output)), timings_(std::move(timings)), registry_(registry) {}

  std::vector<ReproducedRow> look(const std::vector<const PublishedRow*>& rows) const;

  /// The runs that rows still need with this part of the published budget, each once; a finished run with as much or more is none of them.
  Sweep missing(const std::vector<const PublishedRow*>& rows, double budget) const;

 private:
  struct Planned;
  Planned plan(const PublishedRow& row, Index seed, double budget) const;
  std::vector<Measurement> measure(const std::vector<std::pair<const PublishedRow*, Index>>& wanted) const;

  const PublishedResults& published_;
  std::filesystem::path output_, timings_;
  Registry& registry_;
};

}  // namespace stiefel
