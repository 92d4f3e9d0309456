// The result of a run, as a published row measures it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "results/analysis/run_data.hpp"
#include "sweep/published.hpp"

namespace stiefel {

/// What a figure shows of a run.
struct Trace {
  std::vector<Index> x;  ///< optimizer steps; time steps for gradients through time
  std::vector<double> y;
};

/// The most informative run of a seed of a row.
struct Measurement {
  Index seed = 1;
  std::string state{};  ///< finished, running, stopped, diverged, failed; empty: there is no run
  double value = std::numeric_limits<double>::quiet_NaN();
  double share = 1;  ///< of the published number of steps or epochs
  Index length = 0;  ///< that number; 0: not known
  Index step = 0;    ///< of the last published result
  double cpu_seconds = value;
  std::string commit{};         ///< of the program, with "+" when it had changes
  std::filesystem::path run{};  ///< empty when only the record of an earlier report has it
  std::string settings{};       ///< digest of the settings that the row's file gives
  Trace trace{};                ///< of curves: at most 1,000 points, with six digits

  bool counts() const { return state == "finished" && share >= 1; }
};

/// Groups of the result file that measure() reads for a row.
std::vector<std::string> groups_for(const PublishedRow& row);
/// Whether the value is the best of the trace, on the validation set.
bool is_best_of_trace(const PublishedRow& row);
/// Fills in what the run tells; seed, share, length and settings are kept. Throws Error if a finished run has not
/// recorded what the row measures.
void measure(const RunData& run, const PublishedRow& row, Measurement& measurement);

/// Everything but the folder of the run.
STIEFEL_API nlohmann::ordered_json json_of(const Measurement& measurement);
/// Reads what json_of() wrote. Throws nlohmann::json::exception if `json` does not hold a measurement.
Measurement measurement_from(const nlohmann::json& json);

}  // namespace stiefel
