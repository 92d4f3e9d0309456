/// Draws values as colors in a small PNG.
#pragma once

#include <string>

#include "results/analysis/report/figure.hpp"
#include "results/analysis/report/scale.hpp"

namespace stiefel::report {

/// A PNG with the first row of values at the bottom, and the nearest column at each x. Values beyond the ends of
/// `scale` (over one pixel) get its outermost colors; those without a place on it, such as NaN, are transparent.
/// `enlarged` repeats each pixel on both axes, for programs that smooth pictures.
std::string heat_png(const HeatMap& map, const Scale& scale, std::size_t enlarged);
/// The color scale, from the smallest value at the bottom to the largest.
std::string colour_bar_png();

}  // namespace stiefel::report
