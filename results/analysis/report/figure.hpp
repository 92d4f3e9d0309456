/// One figure as data: what is drawn, in the units of its axes, and what is said about it. Other files draw it and make
/// tables of it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stiefel::report {

struct Axis {
  std::string label, units = "1";
  bool logarithmic = false;
  std::vector<std::string> names = {};  ///< of rows 0, 1, … instead of numbers; the first on top
  std::optional<std::pair<double, double>> range = std::nullopt;  ///< else that of the data
  double least_span = 0;                                          ///< so that rounding errors do not fill the figure
};

enum class Form {
  line,
  thin_line,    ///< dotted: bounds of what a line is the middle of
  points,       ///< one for each (x, y)
  open_points,  ///< the same, empty: the state before
  run_points,   ///< one run of those that a line is the median of
  run_line,     ///< the same, with too many points to tell them apart
  bars,         ///< from `low` to `high` along x in row y
  box           ///< x holds 9, 25, 50, 75 and 91 %, or the median alone; y the row
};

struct Series {
  std::string label;
  int colour = 0;
  Form form = Form::line;
  std::vector<double> x = {}, y = {};
  std::vector<double> low = {}, high = {};  ///< a band about y, or the ends of bars; empty: none
  bool in_legend = true;
};

/// A value that something is measured by: what a trivial predictor reaches.
struct Guide {
  std::string label;
  double y;
};

/// Values on a grid, row by row from the lowest y, over the ranges of the axes; that of x begins and ends with a column.
struct HeatMap {
  std::vector<double> x, y;    ///< where the values of each column and row were measured
  std::vector<double> values;  ///< y × x
  Axis scale;                  ///< of the colours
};

struct Figure {
  std::string id;           ///< a name for files and links: [a-z0-9_]+
  std::string title;        ///< one line, at most longest_title characters
  std::string description;  ///< alternative text for readers who cannot see it
  std::string caption;      ///< below the figure
  Axis x, y;
  std::vector<Series> series = {};
  std::vector<Guide> guides = {};
  std::optional<HeatMap> heat = std::nullopt;
  bool unit_circle = false;  ///< drawn, and both axes have one scale
};

/// Number of distinguishable colors; further series start over.
constexpr int colours = 8;

}  // namespace stiefel::report
