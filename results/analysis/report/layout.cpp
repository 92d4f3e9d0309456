#include "results/analysis/report/layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "results/analysis/report/encoding.hpp"

namespace stiefel::report {
namespace {

constexpr double margin = 10, plot_height = 236, panel_gap = 16, least_panel_share = 150;
constexpr std::size_t longest_name = 28, most_lines = 4, most_name_lines = 8;

struct Extent {
  bool logarithmic;
  double least = std::numeric_limits<double>::infinity(), most = -least;

  void add(double value) {
    if (!std::isfinite(value) || (logarithmic && value <= 0)) return;
    least = std::min(least, value), most = std::max(most, value);
  }
  void add(const std::vector<double>& values) {
    for (const double value : values) add(value);
  }
  void widen(double share) {
    if (!(least < most)) return;
    const double ratio = std::pow(most / least, share), distance = share * (most - least);
    least = logarithmic ? least / ratio : least - distance;
    most = logarithmic ? most * ratio : most + distance;
  }
};

bool along_rows(Form form) { return form == Form::bars || form == Form::box; }

Scale scale_of(const Axis& axis, Extent extent, double share, double pixels) {
  if (axis.range) return make_scale(axis.range->first, axis.range->second, axis.logarithmic, pixels);
  extent.add(axis.covered);
  extent.widen(share);
  if (const double lacking = axis.least_span - (extent.most - extent.least); lacking > 0)
    extent.least -= lacking / 2, extent.most += lacking / 2;
  return make_scale(extent.least, extent.most, axis.logarithmic, pixels);
}

Scale x_scale(const Figure& figure, double pixels) {
  Extent extent{figure.x.logarithmic};
  bool points = false, runs = !figure.x.covered.empty();
  for (const Series& series : figure.series) {
    extent.add(series.x);
    if (series.form == Form::bars) extent.add(0), extent.add(series.high);
    points |= series.form == Form::points || series.form == Form::open_points || series.form == Form::box;
    runs |= series.form == Form::run_points;
  }
  return scale_of(figure.x, extent, points ? 0.06 : runs ? 0.02 : 0, pixels);
}

Scale y_scale(const Figure& figure, double pixels) {
  if (!figure.y.names.empty()) return {double(figure.y.names.size()) - 0.5, -0.5, false, pixels};
  Extent extent{figure.y.logarithmic};
  for (const Series& series : figure.series) {
    extent.add(series.y);
    if (!along_rows(series.form)) extent.add(series.low), extent.add(series.high);
  }
  for (const Guide& guide : figure.guides) extent.add(guide.y);
  return scale_of(figure.y, extent, 0.05, pixels);
}

std::vector<Tick> ticks_of(const Axis& axis, const Scale& scale) {
  if (axis.names.empty()) return ticks(scale, 6);
  std::vector<Tick> found;
  for (std::size_t row = 0; row < axis.names.size(); ++row) found.push_back({double(row), axis.names[row]});
  return found;
}

double widest(const std::vector<std::string>& lines) {
  std::size_t most = 0;
  for (const std::string& line : lines) most = std::max(most, characters(line));
  return double(most) * character_width;
}

double widest(const std::vector<Tick>& ticks) {
  double most = 0;
  for (const Tick& tick : ticks) most = std::max(most, widest(name_of_row(tick.text)));
  return most;
}

/// The height of a row, for the name with the most lines.
double row_height(const std::vector<std::string>& names) {
  std::size_t lines = 1;
  for (const std::string& name : names) lines = std::max(lines, name_of_row(name).size());
  return 15 + line_height * double(lines);
}

/// Places the entries side by side, from the top of the figure. Returns where they end.
double place_legend(const Figure& figure, double total_width, std::vector<LegendEntry>& legend) {
  constexpr double left = margin;
  double x = left, y = margin + 4, row = line_height;
  const auto add = [&](Form form, bool band, const Style& style, const std::string& label) {
    const std::vector<std::string> lines =
        wrapped(label, std::size_t((total_width - 70) / character_width), most_lines);
    const double width = 28 + widest(lines);
    if (x > left && x + width > total_width - margin) x = left, y += row, row = line_height;
    legend.push_back({x, y, form, band, style, lines});
    x += width + 10, row = std::max(row, line_height * double(lines.size()));
  };
  for (const LegendKey& key : figure.legend) add(Form::line, false, key.style, key.label);
  for (const Series& series : figure.series)
    if (series.in_legend && !series.label.empty())
      add(series.form, !series.low.empty() && !along_rows(series.form), series.style, series.label);
  for (const Guide& guide : figure.guides) add(Form::thin_line, false, {-1}, guide.label);
  return legend.empty() ? margin : y + row - 4;
}

}  // namespace

std::vector<std::string> name_of_row(const std::string& name) { return wrapped(name, longest_name, most_name_lines); }

std::string title_of(const Axis& axis) {
  return axis.units.empty() || axis.units == "1" ? axis.label : axis.label + " (" + axis.units + ")";
}

Scale colour_scale(const HeatMap& map) {
  Extent extent{map.scale.logarithmic};
  extent.add(map.values);
  return scale_of(map.scale, extent, 0, 1);
}

Placement place(const Figure& figure, double total_width) {
  Placement place;
  place.total_width = total_width;
  const bool rows = !figure.y.names.empty();
  const std::size_t count = std::max<std::size_t>(figure.panels.size(), 1);
  std::size_t columns = count == 4 ? 2 : std::min<std::size_t>(count, 3);
  while (columns > 1 && total_width / double(columns) < least_panel_share) --columns;
  place.left = (figure.y.label.empty() ? margin : 28) + 8;
  place.height = figure.unit_circle ? std::min(320., total_width - place.left - 50)
                 : rows             ? 16 + row_height(figure.y.names) * double(figure.y.names.size())
                 : count > columns  ? 0.6 * plot_height
                                    : plot_height;
  place.y = y_scale(figure, place.height);
  place.y_ticks = ticks_of(figure.y, place.y);
  place.left += widest(place.y_ticks);
  const double right = figure.heat ? 96 : 16, room = total_width - place.left - right;
  place.width = figure.unit_circle ? place.height : (room - panel_gap * double(columns - 1)) / double(columns);
  if (figure.unit_circle) place.left = std::max(place.left, (total_width - place.width) / 2);
  const double title = figure.panels.empty() ? 0 : line_height + 2;
  const double top = place_legend(figure, total_width, place.legend);
  place.top = top + title;
  for (std::size_t i = 0; i < count; ++i)
    place.panels.push_back({place.left + double(i % columns) * (place.width + panel_gap),
                            place.top + double(i / columns) * (place.height + title),
                            figure.panels.empty() ? "" : figure.panels[i], i % columns == 0, i + columns >= count});
  place.x = x_scale(figure, place.width);
  place.x_ticks = ticks_of(figure.x, place.x);
  if (widest(place.x_ticks) * digit_width / character_width * double(place.x_ticks.size()) > place.width)
    place.x_ticks = figure.x.names.empty() ? ticks(place.x, 3) : std::vector<Tick>();  // the rows have the names
  place.total_height = place.panels.back().top + place.height + 46;
  return place;
}

}  // namespace stiefel::report
