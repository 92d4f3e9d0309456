// How published rows are judged by what was measured.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sweep/measurement.hpp"

namespace stiefel {

enum class Verdict {
  none,        ///< no run
  unfinished,  ///< no finished run
  part,        ///< finished with part of the budget
  shown,       ///< finished, and nothing to judge by
  remembered,  ///< finished; the published value is not certain, or judged in another row
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
  std::size_t count = 0;                                   ///< number of these runs
  double share = 1;
};

/// Whether this is a finished run with this share of the budget. More than all of it counts as 1.
STIEFEL_API bool is_finished_with(const Measurement& seed, double share);

/// "matched", "needs whole TIMIT", "stopped at step 500": the state of a row in a few words.
STIEFEL_API std::string state_of(const ReproducedRow& row);
/// What is published: "0.973", or a curve's criterion, "≤ 0.15 by step 5000".
STIEFEL_API std::string published_text(const ReproducedRow& row);
STIEFEL_API std::string measured_text(const ReproducedRow& row);
/// The last validation values of the seeds whose best ones are measured; empty for other rows.
STIEFEL_API std::string end_text(const ReproducedRow& row);

/// Fills in mean, deviation, difference, count and share from the seeds.
void summarise(ReproducedRow& row);
/// Judges by the rules of published.yaml; `all` has the rows of the same item.
void judge(ReproducedRow& row, const std::vector<ReproducedRow>& all, const std::map<std::string, double>& tolerances);

}  // namespace stiefel
