/// How sure a difference between groups of runs is.
#pragma once

#include <limits>
#include <vector>

#include <stiefel/export.hpp>

#include "results/analysis/comparison.hpp"

namespace stiefel {

/// Half the width of the 95% confidence interval of the mean, by Student's t distribution; NaN for fewer than two
/// values.
STIEFEL_API double half_confidence_interval(const Statistics& statistics);

/// A test of differences between pairs.
struct PairedTest {
  std::size_t pairs = 0;
  double p = std::numeric_limits<double>::quiet_NaN();  ///< of both sides
};
/// Most pairs of a test: its time grows with their cube.
constexpr std::size_t most_pairs = 500;

/// Wilcoxon's signed-rank test with its exact distribution, given the ranks. Equal differences share their mean rank,
/// and differences of 0 do not count; if all are 0, p is 1.
STIEFEL_API PairedTest signed_rank_test(std::vector<double> differences);
/// The same for the finished runs of two groups that have the same seed and fold. Throws Error if two of a group have the same
/// one, or if there are too many.
STIEFEL_API PairedTest signed_rank_test(const ComparedGroup& a, const ComparedGroup& b);

}  // namespace stiefel
