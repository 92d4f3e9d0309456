#include "results/analysis/report/svg_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stiefel::report {
namespace {

struct Point {
  double x, y;
};

/// Runs of consecutive points that can be drawn.
using Stretches = std::vector<std::vector<Point>>;

Stretches stretches(const Series& series, const std::vector<double>& y, const Placement& place) {
  Stretches found(1);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const Point point{place.x.at(series.x[i]), place.height - place.y.at(y[i])};
    if (std::isfinite(point.x) && std::isfinite(point.y))
      found.back().push_back(point);
    else if (!found.back().empty())
      found.emplace_back();
  }
  if (found.back().empty()) found.pop_back();
  return found;
}

std::string path_through(const std::vector<Point>& points, char begin = 'M') {
  std::string path;
  for (const Point& point : points)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? begin : 'L', point.x, point.y);
  return path;
}

/// A line without length, which the style draws as a disc.
std::string disc(const Point& point) { return fmt::format("M{:.1f} {:.1f}h0", point.x, point.y); }

std::string lines(const Series& series, const Placement& place) {
  std::string path;
  for (const auto& stretch : stretches(series, series.y, place))
    if (stretch.size() > 1) path += path_through(stretch);
  return path;
}

/// Values without neighbors, through which no line can be drawn.
std::string lonely(const Series& series, const Placement& place) {
  std::string path;
  for (const auto& stretch : stretches(series, series.y, place))
    if (stretch.size() == 1) path += disc(stretch.front());
  return path;
}

std::string band(const Series& series, const Placement& place) {
  // A bound below a logarithmic axis, such as 0, is drawn on the frame.
  const double floor = place.y.logarithmic ? place.y.from : -INFINITY;
  std::vector<double> low = series.low;
  for (double& value : low) value = std::isnan(value) ? value : std::max(value, floor);
  const Stretches below = stretches(series, low, place), above = stretches(series, series.high, place);
  std::string path;
  for (std::size_t i = 0; i < std::min(below.size(), above.size()); ++i) {
    const std::vector<Point> back(below[i].rbegin(), below[i].rend());
    path += path_through(above[i]) + path_through(back, 'L') + "Z";
  }
  return path;
}

std::string points(const Series& series, const Placement& place) {
  std::string path;
  for (const auto& stretch : stretches(series, series.y, place))
    for (const Point& point : stretch) path += disc(point);
  return path;
}

std::string rectangle(double from, double to, double top, double bottom) {
  return fmt::format("M{:.1f} {:.1f}H{:.1f}V{:.1f}H{:.1f}Z", from, top, to, bottom, from);
}

std::string bars(const Series& series, const Placement& place) {
  std::string path;
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    const double y = place.height - place.y.at(series.y[i]), from = place.x.at(series.low[i]),
                 to = place.x.at(series.high[i]);
    if (std::isfinite(from) && std::isfinite(to)) path += rectangle(from, to, y - 8, y + 8);
  }
  return path;
}

std::string box(const Series& series, const Placement& place) {
  std::vector<double> x;
  for (const double value : series.x) x.push_back(place.x.at(value));
  const double y = place.height - place.y.at(series.y[0]), top = y - 8, bottom = y + 8;
  if (!std::isfinite(x.front() + x.back())) return "";
  const std::string colour = style_class(series.style);
  const std::string median =
      fmt::format("<path class=\"median {}\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>", colour, x[x.size() / 2], top, bottom);
  if (x.size() == 1) return median;
  return fmt::format("<path class=\"box {}\" d=\"{}\"/>", colour, rectangle(x[1], x[3], top, bottom)) +
         fmt::format(
             "<path class=\"line {}\" d=\"M{:.1f} {:.1f}H{:.1f}M{:.1f} {:.1f}H{:.1f}M{:.1f} {:.1f}v8M{:.1f} "
             "{:.1f}v8\"/>",
             colour, x[0], y, x[1], x[3], y, x[4], x[0], y - 4, x[4], y - 4) +
         median;
}

std::string path(const char* kind, const Style& style, const std::string& d) {
  return d.empty() ? "" : fmt::format("<path class=\"{} {}\" d=\"{}\"/>", kind, style_class(style), d);
}

}  // namespace

std::string style_class(const Style& style) {
  return (style.hue < 0 ? "guide" : fmt::format("c{}", style.hue % hues)) +
         (style.dash > 0 ? fmt::format(" d{}", style.dash) : "");
}

std::string draw_series(const Series& series, const Placement& place) {
  switch (series.form) {
    case Form::line: {
      const std::string shade = series.low.empty() ? "" : path("band", series.style, band(series, place));
      return shade + path("line", series.style, lines(series, place)) +
             path("points", series.style, lonely(series, place));
    }
    case Form::thin_line:
      return path("thin line", series.style, lines(series, place));
    case Form::points:
      return path("points", series.style, points(series, place));
    case Form::open_points: {
      const std::string d = points(series, place);
      return path("points", series.style, d) + path("points hole", series.style, d);
    }
    case Form::run_points:
      return path("line run", series.style, lines(series, place)) +
             path("points run", series.style, points(series, place));
    case Form::run_line:
      return path("line run", series.style, lines(series, place));
    case Form::bars:
      return path("bars", series.style, bars(series, place));
    case Form::box:
      return box(series, place);
  }
  return "";
}

}  // namespace stiefel::report
