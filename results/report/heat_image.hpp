/// Values as colours: a small PNG of one pixel a value.
#pragma once

#include <string>

#include "results/report/figure.hpp"
#include "results/report/scale.hpp"

namespace stiefel::report {

/// The first row of values at the bottom; what has no place on the scale (which has one pixel) is transparent.
std::string heat_png(const HeatMap& map, const Scale& scale);
/// The colours themselves, from the least at the bottom to the largest.
std::string colour_bar_png();

}  // namespace stiefel::report
