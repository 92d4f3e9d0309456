/// Positions of the parts of a figure, in the units of its viewBox.
#pragma once

#include <string>
#include <vector>

#include "results/analysis/report/figure.hpp"
#include "results/analysis/report/scale.hpp"

namespace stiefel::report {

constexpr double figure_width = 480, character_width = 6.6, digit_width = 7.8, line_height = 17;

/// A unit of figures in papers, in mm: their text of 12 units then has 8 pt.
constexpr double unit = 8. / 12 * 25.4 / 72;

struct LegendEntry {
  double x, y;
  Form form;
  bool band;
  Style style;
  std::vector<std::string> lines;
};

struct PlacedPanel {
  double left, top;
  std::string title;
  bool outer_left, outer_bottom;  ///< whether ticks have their names there
};

struct Placement {
  double total_width, total_height;
  double left, top;      ///< of the first panel
  double width, height;  ///< of a panel
  std::vector<PlacedPanel> panels;
  Scale x, y;  ///< y from the bottom of the plot; rows are from the top
  std::vector<Tick> x_ticks, y_ticks;
  std::vector<LegendEntry> legend;
};

Placement place(const Figure& figure, double total_width = figure_width);
/// The name of a row, in the lines in which it is written next to the axis.
std::vector<std::string> name_of_row(const std::string& name);
/// "label (units)".
std::string title_of(const Axis& axis);
/// The scale of a heat map's colors, over one pixel.
Scale colour_scale(const HeatMap& map);

}  // namespace stiefel::report
