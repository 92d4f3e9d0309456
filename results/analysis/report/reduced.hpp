/// Reduces the points of figures without a visible difference.
#pragma once

#include "results/analysis/report/figure.hpp"

namespace stiefel::report {

/// Of each line's points, in as many stretches of one length, the smallest and the largest value, and of its band the
/// outermost bounds. Its first and last point stay. Lines with no more than twice as many points stay as they are.
Figure reduced(const Figure& figure, std::size_t stretches);
/// The points of the longest line.
std::size_t longest_line(const Figure& figure);

}  // namespace stiefel::report
