#include "cli/reproduction_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "results/analysis/report/figures.hpp"
#include "results/analysis/report/spread.hpp"

namespace stiefel::cli {
namespace {

using report::Figure;

/// Rows that share a figure.
struct Panel {
  std::string name, metric;
  std::vector<const ReproducedRow*> rows;
};

std::vector<Panel> panels_of(const std::vector<const ReproducedRow*>& rows) {
  std::vector<Panel> panels;
  for (const ReproducedRow* row : rows) {
    const auto same = [&](const Panel& panel) {
      return panel.name == row->row->panel && panel.metric == row->row->metric;
    };
    const auto panel = std::ranges::find_if(panels, same);
    if (panel == panels.end())
      panels.push_back({row->row->panel, row->row->metric, {row}});
    else
      panel->rows.push_back(row);
  }
  return panels;
}

std::string y_label(const std::string& metric) {
  if (metric == "gradient_ratio") return "‖∂L/∂hₜ‖";
  if (metric == "orthogonality_drift") return "‖WᴴW − I‖ / its first value";
  if (metric.ends_with("_singular_value") || metric == "condition_number" || metric == "spectral_radius" ||
      metric == "slope")
    return metric_words(metric);
  return "validation " + metric_words(metric);
}

void draw_curves(Figure& figure, const Panel& panel) {
  int drawings = 0;
  // Several rows may judge the same runs; these are drawn once.
  std::set<std::tuple<std::string, std::vector<std::string>, std::size_t>> drawn;
  for (const ReproducedRow* row : panel.rows) {
    if (!drawn.emplace(row->row->file, row->row->overrides, row->seeds.size()).second) continue;
    std::vector<report::Curve> seeds;
    for (const Measurement& seed : row->seeds)
      if (!seed.trace.x.empty()) seeds.push_back({{seed.trace.x.begin(), seed.trace.x.end()}, seed.trace.y, {}, {}});
    if (!seeds.empty()) report::add_runs(figure, row->row->label, report::nth_style(drawings), seeds);
    ++drawings;
  }
  const bool through_time = panel.metric == "gradient_ratio";
  figure.x.label = through_time ? "time step t" : "optimizer step";
  figure.y.logarithmic = through_time || panel.metric == "orthogonality_drift" ||
                         (panel.metric == "loss" && report::spans_decades(figure));
  figure.caption = report::spread_caption(figure);
}

void draw_values(Figure& figure, const Panel& panel) {
  report::Series line;
  line.label = figure.y.label;
  for (const ReproducedRow* row : panel.rows)
    if (row->count > 0) line.x.push_back(row->row->at), line.y.push_back(row->mean);
  report::Series points = line;
  points.form = report::Form::points;
  points.in_legend = line.in_legend = false;
  figure.series = {line, points};
  figure.x.label = panel.rows.front()->row->against;
  figure.x.logarithmic = true;
}

/// The values that curves are judged by.
std::vector<report::Guide> criteria(const Panel& panel) {
  std::map<double, std::string> values;
  for (const ReproducedRow* row : panel.rows)
    if (const std::optional<Criterion>& judge = row->row->judge; judge && !std::isnan(judge->value))
      values.emplace(judge->value, "criterion: " + published_text(*row));
  std::vector<report::Guide> guides;
  for (const auto& [value, label] : values) guides.push_back({label, value});
  return guides;
}

}  // namespace

std::string metric_words(std::string metric) {
  std::ranges::replace(metric, '_', ' ');
  return metric;
}

std::vector<Figure> reproduction_figures(const std::vector<const ReproducedRow*>& rows) {
  std::vector<Figure> figures;
  if (std::ranges::any_of(rows, [](const ReproducedRow* row) { return row->row->kind != "curve"; })) return figures;
  const std::vector<Panel> panels = panels_of(rows);
  for (const Panel& panel : panels) {
    const PublishedRow& first = *panel.rows.front()->row;
    const bool several = std::ranges::any_of(
        panels, [&](const Panel& other) { return other.name == panel.name && other.metric != panel.metric; });
    Figure figure;
    figure.title = first.title;
    figure.id = first.item_name();
    for (const std::string& part : {panel.name, several ? metric_words(panel.metric) : std::string()})
      if (!part.empty()) figure.title += ", " + part, figure.id += " " + part.substr(0, part.find(':'));
    figure.id = report::identifier(figure.id);
    const auto repeated = std::ranges::unique(figure.id, [](char a, char b) { return a == '_' && b == '_'; });
    figure.id.erase(repeated.begin(), repeated.end());
    figure.y.label = y_label(panel.metric);
    figure.guides = criteria(panel);
    if (first.against.empty())
      draw_curves(figure, panel);
    else
      draw_values(figure, panel);
    if (std::ranges::none_of(figure.series, [](const report::Series& series) { return series.x.size() > 1; })) continue;
    figure.description = fmt::format("{}: {} over {}", figure.title, figure.y.label, figure.x.label);
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace stiefel::cli
