/// A figure as SVG.
#pragma once

#include <string>

#include "results/report/figure.hpp"

namespace stiefel::report {

struct Drawing {
  std::string svg;
  bool reduced = false;  ///< lines have more values than pixels: smallest and largest of each pixel column are drawn
};

/// For a page that has the style sheet of figures: its colours follow the page's.
Drawing draw(const Figure& figure);
/// A file of its own, in the light colours.
std::string standalone_svg(const Figure& figure);
/// The figure's numbers, one line for each: `series,x,y` with `low,high` for bands and bars; every stride-th of lines.
std::string csv_of(const Figure& figure, std::size_t stride = 1);

}  // namespace stiefel::report
