/// Values as colours: a small PNG.
#pragma once

#include <string>

#include "results/analysis/report/figure.hpp"
#include "results/analysis/report/scale.hpp"

namespace stiefel::report {

/// The first row of values at the bottom, and at each x the nearest column; values outside the scale (which has one
/// pixel) are transparent. `enlarged` repeats each pixel on both axes, for programs that smooth pictures.
std::string heat_png(const HeatMap& map, const Scale& scale, std::size_t enlarged);
/// The color scale, from the smallest value at the bottom to the largest.
std::string colour_bar_png();

}  // namespace stiefel::report
