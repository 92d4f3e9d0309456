// The result of a run, as a published row measures it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/analysis/run_data.hpp"
#include "sweep/published.hpp"

namespace stiefel {

/// One seed of a row: its most informative run.
struct Measurement {
  Index seed = 1;
  std::string state;  ///< finished, running, stopped, diverged, failed, preempted; empty: there is no run
  double value = std::numeric_limits<double>::quiet_NaN();
  double share = 1;         ///< of the published number of steps or epochs
  bool fulfilled = false;   ///< a curve's criterion
  Index reached_step = -1;  ///< reaches: the step at which it was; −1: never
  Index step = 0;           ///< step of the last published result
  double cpu_seconds = value;
  std::string commit;  ///< commit of the program, with "+" if there were local changes
  std::filesystem::path run;

  bool counts() const { return state == "finished" && share >= 1; }
};

/// Groups of the result file that measure() reads for a row.
std::vector<std::string> groups_for(const PublishedRow& row);
/// Fills in the values from the run; seed and share are kept.
void measure(const RunData& run, const PublishedRow& row, Measurement& measurement);

}  // namespace stiefel
