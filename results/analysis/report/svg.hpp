/// A figure as SVG.
#pragma once

#include <string>

#include "results/analysis/report/figure.hpp"

namespace stiefel::report {

/// Lines with more than twice as many points are drawn as the smallest and largest value in each column of pixels.
constexpr std::size_t pixel_columns = 430;

/// For a page that has the style sheet of figures: its colours follow the page's.
std::string draw(const Figure& figure);
/// A standalone file, in the light colors.
std::string standalone_svg(const Figure& figure);
/// The figure's numbers, one line for each: `series,x,y` with `low,high` for bands and bars; guides are the last
/// series. Of heat maps a table.
std::string csv_of(const Figure& figure);
/// How the series of the CSV are drawn, as classes of the style sheet with commas between them: "line c0,points c0".
/// Empty when none is a line over numbers.
std::string classes_of(const Figure& figure);

}  // namespace stiefel::report
