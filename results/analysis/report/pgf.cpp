#include "results/analysis/report/pgf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "results/analysis/latex_text.hpp"
#include "results/analysis/report/assets.hpp"
#include "results/analysis/report/encoding.hpp"
#include "results/analysis/report/layout.hpp"
#include "results/analysis/report/reduced.hpp"
#include "results/analysis/report/svg.hpp"

namespace stiefel::report {
namespace {

/// The styles of figure.css and paper.css, with lengths in pt.
std::string styles() {
  std::string text =
      "\\tikzset{stiefel d1/.style={dash pattern=on 4.7pt off 2.3pt},\n"
      "  stiefel d2/.style={dash pattern=on 6pt off 2.3pt on 0.8pt off 2.3pt},\n"
      "  stiefel d3/.style={dash pattern=on 1.7pt off 2.3pt},\n"
      "  stiefel thin/.style={line width=0.8pt, dash pattern=on 0.8pt off 2pt},\n"
      "  stiefel band/.style={draw=none, fill opacity=0.17}}\n";
  for (int hue = 0; hue < hues; ++hue)
    text += fmt::format("\\definecolor{{stiefel{}}}{{HTML}}{{{}}}\n", hue,
                        value_of_variable(paper_css, fmt::format("--c{}", hue)).substr(1));
  return text;
}

std::string colour_of(const Style& style) {
  return style.hue < 0 ? "black" : fmt::format("stiefel{}", style.hue % hues);
}

std::string line_of(const Style& style, Form form) {
  std::string options = colour_of(style);
  if (form == Form::thin_line) return options + ", stiefel thin";
  options += form == Form::run_line ? ", line width=0.5pt, opacity=0.5" : ", line width=1.1pt";
  return style.dash > 0 ? fmt::format("{}, stiefel d{}", options, style.dash) : options;
}

std::string marks_of(const Style& style, Form form) {
  if (form == Form::run_points) return colour_of(style) + ", line width=0.5pt, opacity=0.5, mark=*, mark size=1.1pt";
  return fmt::format("{}, only marks, mark={}, mark size=1.5pt", colour_of(style),
                     form == Form::open_points ? "o" : "*");
}

std::string point(double x, double y) { return fmt::format("({:.6g},{:.6g})", x, y); }

/// Calls `with` for the places of neighbors that can be drawn.
template <typename With> void for_stretches(const Series& series, const Figure& figure, With with) {
  const auto drawn = [&](std::size_t i) {
    return std::isfinite(series.x[i]) && std::isfinite(series.y[i]) && (!figure.x.logarithmic || series.x[i] > 0) &&
           (!figure.y.logarithmic || series.y[i] > 0);
  };
  for (std::size_t begin = 0, end; begin < series.y.size(); begin = end + 1) {
    for (end = begin; end < series.y.size() && drawn(end);) ++end;
    if (end > begin) with(begin, end);
  }
}

std::string plot(const std::string& options, const std::string& coordinates, const char* end = "") {
  return fmt::format("\\addplot[{}, forget plot] coordinates {{{}}}{};\n", options, coordinates, end);
}

std::string draw_band(const Series& series, const Figure& figure, double floor) {
  std::string drawn;
  for_stretches(series, figure, [&](std::size_t begin, std::size_t end) {
    std::string upper, lower;
    for (std::size_t i = begin; i < end; ++i)
      if (std::isfinite(series.low[i]) && std::isfinite(series.high[i])) {
        upper += point(series.x[i], series.high[i]);
        lower = point(series.x[i], std::max(series.low[i], floor)) + lower;
      }
    if (!upper.empty()) drawn += plot("stiefel band, fill=" + colour_of(series.style), upper + lower, " -- cycle");
  });
  return drawn;
}

/// A piece of a row: from x to x, and from this far above its middle to this far below.
std::string piece(const std::string& options, double from, double to, double row, double half) {
  if (!std::isfinite(from) || !std::isfinite(to)) return "";
  return fmt::format("\\path[{}] (axis cs:{:.6g},{:.6g}) rectangle (axis cs:{:.6g},{:.6g});\n", options, from,
                     row - half, to, row + half);
}

std::string draw_series(const Series& series, const Figure& figure, double floor) {
  std::string drawn;
  const std::string colour = colour_of(series.style);
  switch (series.form) {
    case Form::bars:
      for (std::size_t i = 0; i < series.y.size(); ++i)
        drawn += piece("fill=" + colour, series.low[i], series.high[i], series.y[i], 0.25);
      return drawn;
    case Form::box: {
      const double row = series.y.front(), median = series.x[series.x.size() / 2];
      if (series.x.size() > 1) {
        drawn +=
            piece(fmt::format("draw={0}, fill={0}, fill opacity=0.17", colour), series.x[1], series.x[3], row, 0.25);
        for (const int side : {0, 4})
          drawn += piece("draw=" + colour, series.x[std::size_t(side)], series.x[side == 0 ? 1 : 3], row, 0) +
                   piece("draw=" + colour, series.x[std::size_t(side)], series.x[std::size_t(side)], row, 0.12);
      }
      return drawn + piece("line width=2pt, draw=" + colour, median, median, row, 0.25);
    }
    case Form::line:
    case Form::thin_line:
    case Form::run_line:
      if (!series.low.empty()) drawn += draw_band(series, figure, floor);
      for_stretches(series, figure, [&](std::size_t begin, std::size_t end) {
        std::string points;
        for (std::size_t i = begin; i < end; ++i) points += point(series.x[i], series.y[i]);
        drawn +=
            plot(end - begin > 1 ? line_of(series.style, series.form) : marks_of(series.style, series.form), points);
      });
      return drawn;
    default:
      for_stretches(series, figure, [&](std::size_t begin, std::size_t end) {
        std::string points;
        for (std::size_t i = begin; i < end; ++i) points += point(series.x[i], series.y[i]);
        drawn += plot(marks_of(series.style, series.form), points);
      });
      return drawn;
  }
}

std::string ticks_text(const char* axis, const std::vector<Tick>& ticks, bool named) {
  std::string places, names;
  for (const Tick& tick : ticks) {
    places += fmt::format("{}{:.9g}", places.empty() ? "" : ",", tick.value);
    names += fmt::format("{}{{{}}}", names.empty() ? "" : ",", latex_text(tick.text));
  }
  return fmt::format("  {0}tick={{{1}}}, {0}ticklabels={{{2}}},\n", axis, places, named ? names : "");
}

std::string heat_options(const HeatMap& heat) {
  const Scale scale = colour_scale(heat);
  const auto place = [&](double value) { return scale.logarithmic ? std::log10(value) : value; };
  std::vector<Tick> marks = ticks(scale, 6);
  for (Tick& tick : marks) tick.value = place(tick.value);
  return fmt::format(
      "  colormap/viridis, point meta min={:.9g}, point meta max={:.9g},\n  colorbar, colorbar style={{width=2mm, "
      "label style={{font=\\footnotesize}}, "
      "ylabel={{{}}},\n{}  }},\n",
      place(scale.from), place(scale.to), latex_text(title_of(heat.scale)), ticks_text("y", marks, true));
}

std::string legend(const Placement& place) {
  std::string text;
  for (const LegendEntry& entry : place.legend) {
    std::string label;
    for (const std::string& line : entry.lines) label += line;
    const bool line = entry.form == Form::line || entry.form == Form::thin_line || entry.form == Form::run_line;
    text += fmt::format("\\addlegendimage{{{}}}\n\\addlegendentry{{{}}}\n",
                        entry.form == Form::bars ? "area legend, draw=none, fill=" + colour_of(entry.style)
                        : line                   ? line_of(entry.style, entry.form)
                                                 : marks_of(entry.style, entry.form),
                        latex_text(label));
  }
  return text;
}

/// As many columns as fit next to each other, each as wide as its widest entry.
std::size_t legend_columns(const Placement& place) {
  for (std::size_t columns = place.legend.size(); columns > 1; --columns) {
    std::vector<double> widths(columns);
    for (std::size_t i = 0; i < place.legend.size(); ++i) {
      std::size_t letters = 0;
      for (const std::string& line : place.legend[i].lines) letters += characters(line);
      widths[i % columns] = std::max(widths[i % columns], 36 + 0.85 * character_width * double(letters));
    }
    if (std::accumulate(widths.begin(), widths.end(), 0.) <= place.total_width) return columns;
  }
  return 1;
}

std::string axis(const Figure& figure, const Placement& place, std::size_t number) {
  const PlacedPanel& panel = place.panels[number];
  // TeX's numbers end at 16,384 pt, which the logarithms of a narrow range would exceed; such an axis is linear.
  const auto mode = [](const Scale& scale) {
    return scale.logarithmic && std::max(std::abs(std::log(scale.from)), std::abs(std::log(scale.to))) <
                                    60 * std::log(scale.to / scale.from)
               ? "log"
               : "normal";
  };
  const bool first = number == 0, rows = !figure.y.names.empty();
  std::string text = fmt::format(
      "\\begin{{axis}}[\n  at={{({:.2f}mm,{:.2f}mm)}}, anchor=north west, scale only axis, width={:.2f}mm, "
      "height={:.2f}mm,\n"
      "  font=\\footnotesize, label style={{font=\\footnotesize}}, tick label style={{font=\\footnotesize}}, title "
      "style={{font=\\footnotesize, yshift=-1ex}},\n"
      "  axis on top, scaled ticks=false, tick align=inside, tick pos=left, clip marker paths=true,\n"
      "  xmode={}, ymode={}, xmin={:.9g}, xmax={:.9g}, ymin={:.9g}, ymax={:.9g},\n",
      panel.left * unit, -panel.top * unit, place.width * unit, place.height * unit, mode(place.x), mode(place.y),
      place.x.from, place.x.to, rows ? place.y.to : place.y.from, rows ? place.y.from : place.y.to);
  text += ticks_text("x", place.x_ticks, panel.outer_bottom) + ticks_text("y", place.y_ticks, panel.outer_left);
  if (rows) text += "  y dir=reverse, yticklabel style={align=right},\n";
  if (!panel.title.empty()) text += fmt::format("  title={{{}}},\n", latex_text(panel.title));
  if (panel.outer_bottom) text += fmt::format("  xlabel={{{}}},\n", latex_text(title_of(figure.x)));
  if (panel.outer_left && !figure.y.label.empty())
    text += fmt::format("  ylabel={{{}}},\n", latex_text(title_of(figure.y)));
  if (first)
    text += fmt::format(
        "  legend columns={}, legend cell align=left, legend style={{at={{(0,1)}}, anchor=south west, xshift={:.2f}mm, "
        "yshift={}mm, draw=none, fill=none, inner sep=0pt, font=\\footnotesize, /tikz/every even column/.append "
        "style={{column sep=1.5mm}}}},\n",
        legend_columns(place), (2 - place.left) * unit, panel.title.empty() ? 1 : 5);
  if (figure.heat) text += heat_options(*figure.heat);
  text += "]\n";
  if (first) text += legend(place);
  if (figure.heat)
    text += fmt::format("\\addplot graphics[xmin={:.9g}, xmax={:.9g}, ymin={:.9g}, ymax={:.9g}] {{{}.png}};\n",
                        place.x.from, place.x.to, place.y.from, place.y.to, figure.id);
  for (const Guide& guide : figure.guides)
    text += fmt::format("\\draw[black, stiefel thin] (axis cs:{0:.9g},{2:.6g}) -- (axis cs:{1:.9g},{2:.6g});\n",
                        place.x.from, place.x.to, guide.y);
  if (figure.unit_circle) text += "\\addplot[gray, domain=0:360, samples=121, forget plot] ({cos(x)},{sin(x)});\n";
  for (const Series& series : figure.series)
    if (place.panels.size() == 1 || series.style.panel == int(number))
      text += draw_series(series, figure, place.y.logarithmic ? place.y.from : -INFINITY);
  return text + "\\end{axis}\n";
}

}  // namespace

std::string pgf_of(const Figure& whole, double width) {
  const Figure figure = for_paper(reduced(whole, pixel_columns));
  const Placement place = report::place(figure, width / unit);
  std::string text =
      "% Needs \\usepackage{pgfplots} and \\pgfplotsset{compat=1.18}.\n\\begin{tikzpicture}\n" + styles();
  for (std::size_t i = 0; i < place.panels.size(); ++i) text += axis(figure, place, i);
  return text + "\\end{tikzpicture}\n";
}

}  // namespace stiefel::report
