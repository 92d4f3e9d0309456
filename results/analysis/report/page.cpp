#include "results/analysis/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "results/analysis/report/assets.hpp"
#include "results/analysis/report/encoding.hpp"
#include "results/analysis/report/reduced.hpp"
#include "results/analysis/report/svg.hpp"
#include "results/analysis/report/tables.hpp"

namespace stiefel::report {
namespace {

constexpr std::size_t most_csv_lines = 3200;

std::string title_of(const Study& study) {
  std::set<std::string> names;
  for (const Group& group : study.groups)
    for (const RunData& run : group.runs) names.insert(run.header.title);
  const std::vector<std::string> first(
      names.begin(), std::next(names.begin(), std::ptrdiff_t(std::min<std::size_t>(names.size(), 3))));
  return fmt::format("{}{}", fmt::join(first, ", "),
                     names.size() > 3 ? fmt::format(" and {} more", names.size() - 3) : "");
}

std::string policy() {
  return fmt::format(
      "default-src 'none'; img-src data:; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
      content_hash(std::string(page_css) + figure_css), content_hash(script));
}

std::string navigation(const std::vector<Section>& sections) {
  std::string links;
  const auto link = [&](const std::string& id, const std::string& title) {
    links += fmt::format("<li><a href=\"#{}\">{}</a></li>", id, title);
  };
  for (const Section& section : sections) link(section.id, section.title);
  link("configuration", "Configuration"), link("provenance", "Provenance"), link("runs", "Runs");
  return "<nav aria-label=\"Contents\"><ul>" + links + "</ul></nav>\n";
}

std::string panel(const std::string& id, const std::string& title, const std::string& content) {
  return fmt::format("<section id=\"{}\"><h2>{}</h2><div class=\"panel\">{}</div></section>\n", id, title, content);
}

/// The styles of the groups, which figures of the page then need not repeat.
std::string legend(const Study& study) {
  std::vector<LegendKey> keys = study.design.legend();
  if (keys.empty())
    for (const Group& group : study.shown()) keys.push_back({group.label, group.style});
  std::string entries;
  for (const LegendKey& key : keys) entries += fmt::format("<li>{}{}</li>", swatch(key.style), escape(key.label));
  return "<ul class=\"groups\" aria-label=\"Styles of the groups\">" + entries + "</ul>\n";
}

Figure without_groups_in_legend(Figure figure, const Study& study) {
  figure.legend.clear();
  for (Series& series : figure.series)
    if (std::ranges::find(study.shown(), series.label, &Group::label) != study.shown().end()) series.in_legend = false;
  return figure;
}

}  // namespace

std::string figure_html(const Figure& figure) {
  const std::size_t points = longest_line(figure), lines = std::max<std::size_t>(1, figure.series.size());
  const std::size_t stretches = std::max<std::size_t>(1, most_csv_lines / lines / 2);
  std::string note = points > 2 * pixel_columns ? " Drawn: smallest and largest value of each pixel column." : "";
  if (points > 2 * stretches)
    note += fmt::format(" Data: smallest and largest of every {} points; `stiefel report --figures` writes all.",
                        points / stretches);
  const auto has_zeros = [](const Series& series) {
    return std::ranges::any_of(series.y, [](double y) { return y <= 0; });
  };
  if (figure.y.logarithmic && std::ranges::any_of(figure.series, has_zeros))
    note += " Zeros are not drawn: the axis is logarithmic.";
  const std::string classes = classes_of(figure);
  return fmt::format(
      "<figure id=\"{}\"{}><h3>{}</h3>{}<figcaption>{}{} <span class=\"download\">Data: "
      "{}</span></figcaption></figure>\n",
      figure.id, classes.empty() ? "" : fmt::format(" data-lines=\"{}\"", classes), escape(figure.title), draw(figure),
      escape(figure.caption), escape(note),
      download_link(csv_of(reduced(figure, stretches)), "text/csv", figure.id + ".csv", "CSV"));
}

std::string document(const std::string& whole_title, const std::string& lead, const std::string& further,
                     const std::string& content) {
  const std::string title = escape(shortened(whole_title, longest_title));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" "
      "content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n"
      "<header><h1>{}</h1><p class=\"lead\">{}</p><p class=\"note keys\" hidden>Figures with lines: read values with "
      "the mouse or the "
      "arrow keys, "
      "drag or press + and − to zoom, double-click or press Escape to show "
      "all.</p>{}</header>\n{}</main>\n<script>{}</script>\n</body>\n</html>\n",
      policy(), title, page_css, figure_css, title, escape(lead), further, content, script);
}

std::string page(const Study& study, const std::vector<Section>& sections, const std::string& title) {
  const std::string further = fmt::format("<p class=\"note\">{}</p>{}", escape(origin(study)), navigation(sections));
  std::string html = panel("summary", "Summary", summary_table(study));
  if (!sections.empty()) html += legend(study);
  if (study.shown().size() < study.groups.size())
    html += fmt::format("<p class=\"note\">Figures show {} of {} groups: {}.</p>\n", most_groups, study.groups.size(),
                        study.metric.better == Better::unknown ? "the first by their labels"
                                                               : "those with the best " + escape(study.metric.label));
  for (const Section& section : sections) {
    html += fmt::format("<section id=\"{}\"><h2>{}</h2>\n<div class=\"figures\">\n", section.id, section.title);
    for (const Figure& figure : section.figures) html += figure_html(without_groups_in_legend(figure, study));
    html += "</div></section>\n";
  }
  html += panel("configuration", "Configuration", configuration_tables(study));
  html += panel("provenance", "Provenance", provenance_table(study));
  html += panel("runs", "Runs", runs_table(study));
  return document(title.empty() ? title_of(study) : title, summary_of(study) + networks_of(study), further, html);
}

}  // namespace stiefel::report
