/// Reduces the points of figures without a visible difference.
#pragma once

#include "results/analysis/report/figure.hpp"

namespace stiefel::report {

/// Divides each line into `stretches` parts of equal length, and keeps the smallest and the largest value of each part
/// and the outermost bounds of its band. The first and the last point of a line stay. Lines with at most twice as many
/// points as parts stay unchanged.
Figure reduced(const Figure& figure, std::size_t stretches);
/// How many points the longest line has.
std::size_t longest_line(const Figure& figure);

}  // namespace stiefel::report
