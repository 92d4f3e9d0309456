/// Draws a figure as SVG.
#pragma once

#include <optional>
#include <string>

#include "results/analysis/report/figure.hpp"

namespace stiefel::report {

/// Lines with more than twice as many points are drawn as the smallest and largest value in each column of pixels.
constexpr std::size_t pixel_columns = 430;

/// The figure for a page with the style sheet of figures, whose colors it follows.
std::string draw(const Figure& figure);
/// The figure as a standalone file, in the light colors. With a width in mm it is drawn for a paper.
std::string standalone_svg(const Figure& figure, std::optional<double> width = std::nullopt);
/// The figure with axes of its own, and with dashes for lines that only colors distinguish, for gray prints.
Figure for_paper(Figure figure);
/// The figure's numbers, one line for each: `series,x,y` with `low,high` for bands and bars. Guides are the last
/// series. A heat map becomes a table.
std::string csv_of(const Figure& figure);
/// How the series of the CSV are drawn, as classes of the style sheet with commas between them: "line c0,points c0".
/// Empty if none is a line over numbers.
std::string classes_of(const Figure& figure);

}  // namespace stiefel::report
