/// A figure as data: what is drawn, in the units of its axes, and texts about it. Other files draw it and make tables
/// of it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stiefel::report {

struct Axis {
  std::string label, units = "1";
  bool logarithmic = false;
  std::vector<std::string> names = {};  ///< names of rows 0, 1, …, instead of numbers, the first on top; or of columns
  std::optional<std::pair<double, double>> range = std::nullopt;  ///< default: the range of the data
  double least_span = 0;             ///< least range, so that rounding errors do not fill the figure
  std::vector<double> covered = {};  ///< further values that the range of the data includes
};

enum class Form {
  line,
  thin_line,    ///< dotted: a bound of the values around a line
  points,       ///< a point for each (x, y)
  open_points,  ///< the same, hollow: an earlier state
  run_points,   ///< points of one of the runs whose median is a line
  run_line,     ///< the same, if there are too many points to distinguish them
  bars,         ///< from `low` to `high` along x in row y
  box           ///< x holds 9, 25, 50, 75 and 91 %, or the median alone; y the row
};

/// How something looks in all figures.
struct Style {
  int hue = 0;    ///< < 0: gray, as guides are
  int dash = 0;   ///< 0: a solid line
  int panel = 0;  ///< in which of a figure's panels it is
};

struct Series {
  std::string label;
  Style style = {};
  Form form = Form::line;
  std::vector<double> x = {}, y = {};
  std::vector<double> low = {}, high = {};  ///< a band about y, or the ends of bars; empty: none
  bool in_legend = true;
};

/// A value to compare with, such as what the constant predictor reaches.
struct Guide {
  std::string label;
  double y;
};

/// Values on a grid, row by row from the lowest y. The grid covers the ranges of the axes; the x axis begins and ends
/// at a column.
struct HeatMap {
  std::vector<double> x, y;    ///< where the values of each column and row were measured
  std::vector<double> values;  ///< y × x
  Axis scale;                  ///< of the colors
  bool cells = false;          ///< the x axis extends half a cell beyond the first and the last column
};

/// A line of the legend that stands for several series.
struct LegendKey {
  std::string label;
  Style style;
};

struct Figure {
  std::string id;           ///< a name for files and links: [a-z0-9_]+
  std::string title;        ///< one line, at most longest_title characters
  std::string description;  ///< alternative text for readers who cannot see it
  std::string caption;      ///< below the figure
  Axis x, y;
  std::vector<Series> series = {};
  std::vector<Guide> guides = {};
  std::vector<LegendKey> legend = {};    ///< before the series
  std::vector<std::string> panels = {};  ///< titles of small pictures with the same axes; empty: one picture
  std::optional<HeatMap> heat = std::nullopt;
  bool unit_circle = false;  ///< whether it is drawn; both axes then have the same scale
};

/// How many colors, dashes and panels can be distinguished.
constexpr int hues = 8, dashes = 4, most_panels = 6;

/// The style of the n-th of some things that do not differ by design. Colors begin again with other dashes, which the
/// second four have from the start.
constexpr Style nth_style(int number) {
  const int hue = number % hues;
  return {hue, (number / hues + hue / 4) % dashes};
}

}  // namespace stiefel::report
