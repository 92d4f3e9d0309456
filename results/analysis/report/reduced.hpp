/// Reduces the points of figures without a visible difference.
#pragma once

#include "results/analysis/report/figure.hpp"

namespace stiefel::report {

/// Divides each line into stretches of equal length, and keeps the smallest and the largest value of each stretch, and
/// the outermost bounds of its band. The first and the last point of a line stay. Lines with no more than twice as many
/// points stay as they are.
Figure reduced(const Figure& figure, std::size_t stretches);
/// The points of the longest line.
std::size_t longest_line(const Figure& figure);

}  // namespace stiefel::report
