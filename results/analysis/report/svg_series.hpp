/// The content of a figure's frame, in pixels of the plot.
#pragma once

#include <string>

#include "results/analysis/report/figure.hpp"
#include "results/analysis/report/layout.hpp"

namespace stiefel::report {

std::string draw_series(const Series& series, const Placement& place);
/// "c1", or "c1 d2" with dashes.
std::string style_class(const Style& style);

}  // namespace stiefel::report
