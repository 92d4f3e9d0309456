#include "results/analysis/report/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/analysis/report/assets.hpp"
#include "results/analysis/report/encoding.hpp"
#include "results/analysis/report/heat_image.hpp"
#include "results/analysis/report/layout.hpp"
#include "results/analysis/report/reduced.hpp"
#include "results/analysis/report/svg_series.hpp"

namespace stiefel::report {
namespace {

constexpr std::size_t longest_y_label = 40;  ///< in characters, as there is room for

std::string text(double x, double y, const std::string& anchor, const std::string& content,
                 const std::string& more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>", x, y, anchor, more,
                     escape(content));
}

std::string text(double x, double y, const std::string& anchor, const std::vector<std::string>& lines) {
  if (lines.size() == 1) return text(x, y, anchor, lines[0]);
  std::string spans;
  for (const std::string& line : lines)
    spans += fmt::format("<tspan x=\"{:.1f}\" y=\"{:.1f}\">{}</tspan>", x,
                         y + line_height * double(&line - lines.data()), escape(line));
  return fmt::format("<text text-anchor=\"{}\">{}</text>", anchor, spans);
}

std::string image(double x, double y, double width, double height, const std::string& png) {
  return fmt::format(
      "<image x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" preserveAspectRatio=\"none\" "
      "class=\"cells\" "
      "href=\"data:image/png;base64,{}\"/>",
      x, y, width, height, base64(png));
}

std::string draw_axes(const Figure& figure, const Placement& place) {
  std::string grid, x_names, y_names, titles;
  for (const PlacedPanel& panel : place.panels) {
    const double bottom = panel.top + place.height;
    for (const Tick& tick : place.x_ticks) {
      const double x = panel.left + place.x.at(tick.value);
      grid += fmt::format("M{:.1f} {:.1f}V{:.1f}", x, panel.top, bottom);
      const double half = double(characters(tick.text)) * digit_width / 2;
      if (panel.outer_bottom) x_names += text(std::min(x, place.total_width - half), bottom + 16, "middle", tick.text);
    }
    for (const Tick& tick : place.y_ticks) {
      const double y = bottom - place.y.at(tick.value);
      if (figure.y.names.empty()) grid += fmt::format("M{:.1f} {:.1f}h{:.1f}", panel.left, y, place.width);
      const std::vector<std::string> lines = name_of_row(tick.text);
      if (panel.outer_left)
        y_names += text(panel.left - 7, y + 4 - line_height / 2 * double(lines.size() - 1), "end", lines);
    }
    if (!panel.title.empty())
      titles += text(panel.left + place.width / 2, panel.top - 6, "middle",
                     shortened(panel.title, std::size_t(place.width / character_width)), " class=\"label panel\"");
  }
  std::string drawn = figure.heat ? "" : fmt::format("<path class=\"grid\" d=\"{}\"/>", grid);
  drawn += fmt::format("<g class=\"ticks x\">{}</g><g class=\"ticks y\">{}</g>{}", x_names, y_names, titles);
  const double middle = (place.left + std::ranges::max(place.panels, {}, &PlacedPanel::left).left + place.width) / 2,
               bottom = place.panels.back().top + place.height;
  drawn +=
      text(middle, bottom + 37, "middle",
           shortened(title_of(figure.x), std::size_t(place.total_width / character_width) - 10), " class=\"label x\"");
  if (!figure.y.label.empty())
    drawn += text(0, 0, "middle", shortened(title_of(figure.y), longest_y_label),
                  fmt::format(" class=\"label y\" transform=\"translate({:.1f} {:.1f}) rotate(-90)\"",
                              figure.unit_circle ? place.left - 44 : 14., (place.top + bottom) / 2));
  return drawn;
}

std::string draw_legend(const Placement& place) {
  std::string drawn;
  for (const LegendEntry& entry : place.legend) {
    const std::string colour = style_class(entry.style);
    const double y = entry.y - 4;
    if (entry.band)
      drawn += fmt::format("<rect class=\"band {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"20\" height=\"10\"/>", colour,
                           entry.x, y - 5);
    if (entry.form == Form::bars)
      drawn += fmt::format("<rect class=\"bars {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"10\"/>", colour,
                           entry.x + 4, y - 5);
    else if (entry.form == Form::points || entry.form == Form::open_points)
      drawn += fmt::format("<path class=\"points {0}\" d=\"M{1:.1f} {2:.1f}h0\"/>{3}", colour, entry.x + 10, y,
                           entry.form == Form::points
                               ? ""
                               : fmt::format("<path class=\"points hole\" d=\"M{:.1f} {:.1f}h0\"/>", entry.x + 10, y));
    else
      drawn += fmt::format("<path class=\"{}line {}\" d=\"M{:.1f} {:.1f}h20\"/>",
                           entry.form == Form::thin_line ? "thin " : "", colour, entry.x, y);
    drawn += text(entry.x + 26, entry.y, "start", entry.lines);
  }
  return drawn.empty() ? "" : "<g class=\"legend\">" + drawn + "</g>";
}

std::string draw_heat(const HeatMap& heat, const Placement& place, std::size_t enlarged) {
  Scale scale = colour_scale(heat);
  std::string drawn = image(place.left, place.top, place.width, place.height, heat_png(heat, scale, enlarged));
  const double x = place.left + place.width + 12;
  drawn += image(x, place.top, 12, place.height, colour_bar_png());
  scale.pixels = place.height;
  drawn += "<g class=\"ticks scale\">";
  for (const Tick& tick : ticks(scale, 6))
    drawn += text(x + 16, place.top + place.height - scale.at(tick.value) + 4, "start", tick.text);
  drawn += "</g>";
  const std::string title = heat.scale.units == "1" ? heat.scale.label + " (dimensionless)" : title_of(heat.scale);
  return drawn + text(0, 0, "middle", shortened(title, longest_y_label),
                      fmt::format(" class=\"label scale\" transform=\"translate({:.1f} {:.1f}) rotate(-90)\"",
                                  place.total_width - 8, place.top + place.height / 2));
}

std::string draw_guides(const Figure& figure, const Placement& place) {
  std::string drawn;
  for (const Guide& guide : figure.guides)
    if (const double y = place.height - place.y.at(guide.y); std::isfinite(y))
      drawn += fmt::format("<path class=\"thin line guide\" d=\"M0 {:.1f}H{:.1f}\"/>", y, place.width);
  if (figure.unit_circle)
    drawn += fmt::format("<ellipse class=\"circle\" cx=\"{:.1f}\" cy=\"{:.1f}\" rx=\"{:.1f}\" ry=\"{:.1f}\"/>",
                         place.x.at(0), place.height - place.y.at(0), place.x.at(1) - place.x.at(0),
                         place.y.at(1) - place.y.at(0));
  return drawn;
}

std::string range_text(const Scale& scale) {
  return fmt::format("{:.17g} {:.17g} {}", scale.from, scale.to, scale.logarithmic ? "log" : "linear");
}

/// The contents of the panels, which a script may enlarge in part if there is only one, and their frames.
std::string draw_plot(const Figure& figure, const Placement& place) {
  std::string drawn;
  for (const PlacedPanel& panel : place.panels) {
    const std::string frame = fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"", panel.left,
                                          panel.top, place.width, place.height);
    drawn += fmt::format("<svg class=\"plot\" {} viewBox=\"0 0 {:.1f} {:.1f}\" preserveAspectRatio=\"none\">", frame,
                         place.width, place.height);
    drawn += draw_guides(figure, place);
    for (const Series& series : figure.series)
      if (place.panels.size() == 1 || series.style.panel == int(&panel - place.panels.data()))
        drawn += draw_series(series, place);
    drawn += fmt::format("</svg><rect class=\"frame\" {}/>", frame);
  }
  return drawn;
}

std::string draw(const Figure& whole, const std::string& style, std::optional<double> width = std::nullopt) {
  const Figure figure = reduced(whole, pixel_columns);
  const Placement place = report::place(figure, width ? *width / unit : figure_width);
  const std::string id = "figure-" + figure.id;
  std::string drawn = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"{0}\" class=\"drawing\" viewBox=\"0 0 {1:.0f} {2:.0f}\"{8} "
      "role=\"img\" "
      "aria-labelledby=\"{0}-title {0}-description\" data-x=\"{3}\" data-y=\"{4}\">"
      "<title id=\"{0}-title\">{5}</title><desc id=\"{0}-description\">{6}</desc>{7}",
      id, place.total_width, place.total_height, range_text(place.x), range_text(place.y), escape(figure.title),
      escape(figure.description), style,
      width ? fmt::format(" width=\"{0:.2f}mm\" height=\"{1:.2f}mm\" style=\"width:{0:.2f}mm;height:{1:.2f}mm\"",
                          *width, place.total_height * unit)
            : "");
  if (figure.heat) drawn += draw_heat(*figure.heat, place, style.empty() ? 1 : 8);
  return drawn + draw_axes(figure, place) + draw_plot(figure, place) + draw_legend(place) + "</svg>";
}

std::string shortest(double value) { return std::isnan(value) ? "" : fmt::format("{:.9g}", value); }

std::string csv_of(const Figure& figure, const HeatMap& heat) {
  std::vector<std::string> fields{fmt::format("{} (rows), {} (columns)", title_of(figure.y), title_of(figure.x))};
  const auto name = [](const Axis& axis, double at) {
    return axis.names.empty() ? shortest(at) : axis.names.at(std::size_t(at));
  };
  for (const double x : heat.x) fields.push_back(name(figure.x, x));
  std::string lines = csv_line(fields);
  for (std::size_t row = 0; row < heat.y.size(); ++row) {
    fields = {name(figure.y, heat.y[row])};
    for (std::size_t column = 0; column < heat.x.size(); ++column)
      fields.push_back(fmt::format("{:.5g}", heat.values[row * heat.x.size() + column]));
    lines += csv_line(fields);
  }
  return lines;
}

const char* class_of(Form form) {
  switch (form) {
    case Form::line:
      return "line";
    case Form::thin_line:
      return "thin line";
    case Form::run_line:
      return "line run";
    case Form::run_points:
      return "points run";
    default:
      return "points";
  }
}

}  // namespace

std::string draw(const Figure& figure) { return draw(figure, ""); }

Figure for_paper(Figure figure) {
  const auto by_number = [](const Series& series) { return series.style.dash == nth_style(series.style.hue).dash; };
  if (figure.legend.empty() && std::ranges::all_of(figure.series, by_number))
    for (Series& series : figure.series) series.style.dash = std::max(series.style.hue, 0) % dashes;
  figure.x.covered.clear(), figure.y.covered.clear();  // it may stand alone
  return figure;
}

std::string standalone_svg(const Figure& figure, std::optional<double> width) {
  const std::string paper = R"(<rect width="100%" height="100%" style="fill:#fff;stroke:none"/>)";
  const std::string style = "<style>" + figure_style(width ? paper_css : page_css) + "</style>" + paper;
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + draw(width ? for_paper(figure) : figure, style, width) + "\n";
}

std::string csv_of(const Figure& figure) {
  if (figure.heat) return csv_of(figure, *figure.heat);
  std::string lines =
      csv_line({"series", title_of(figure.x), figure.y.names.empty() ? title_of(figure.y) : "group", "low", "high"});
  for (const Series& series : figure.series) {
    if (series.form == Form::box) continue;
    const auto field = [](const std::vector<double>& values, std::size_t i) {
      return i < values.size() ? shortest(values[i]) : "";
    };
    const auto row = [&](std::size_t i) {
      return figure.y.names.empty() ? field(series.y, i) : figure.y.names.at(std::size_t(std::lround(series.y[i])));
    };
    for (std::size_t i = 0; i < series.y.size(); ++i)
      lines += csv_line({series.label, field(series.x, i), row(i), field(series.low, i), field(series.high, i)});
  }
  for (const Guide& guide : figure.guides) {
    double least = INFINITY, most = -INFINITY;
    for (const Series& series : figure.series)
      for (const double x : series.x) least = std::min(least, x), most = std::max(most, x);
    for (const double x : {least, most}) lines += csv_line({guide.label, shortest(x), shortest(guide.y), "", ""});
  }
  return lines;
}

std::string classes_of(const Figure& figure) {
  bool some = false;
  std::vector<std::string> classes;
  for (const Series& series : figure.series) {
    if (series.y.empty()) continue;
    some |= series.form == Form::line;
    classes.push_back(fmt::format("{} {}", class_of(series.form), style_class(series.style)));
  }
  for (std::size_t i = 0; i < figure.guides.size(); ++i) classes.push_back("thin line guide");
  return some && !figure.unit_circle && figure.panels.empty() && figure.y.names.empty()
             ? fmt::format("{}", fmt::join(classes, ","))
             : "";
}

}  // namespace stiefel::report
