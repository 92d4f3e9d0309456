#include "reproduction_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include <results/isolated_reader.hpp>
#include <results/report/assets.hpp>
#include <results/report/encoding.hpp>
#include <results/report/figures.hpp>
#include <results/report/svg.hpp>

namespace stiefel::cli {
namespace {

std::string number_or_nothing(double value, const char* form) { return std::isnan(value) ? "" : fmt::format(fmt::runtime(form), value); }

std::string seeds_text(const ReproducedRow& row) {
  return row.row->timing() || row.row->seeds.size() == 1 ? "" : fmt::format("{}/{}", row.count, row.row->seeds.size());
}

/// What several seeds have in common, or all of them.
template <class F> std::string over_seeds(const ReproducedRow& row, F&& text_of) {
  std::set<std::string> texts;
  for (const Measurement& seed : row.seeds)
    if (!seed.state.empty() && !text_of(seed).empty()) texts.insert(text_of(seed));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string processor_time(const ReproducedRow& row) {
  double sum = 0;
  for (const Measurement& seed : row.seeds)
    if (seed.state == "finished") sum += seed.cpu_seconds;
  return row.count == 0 || row.row->timing() ? "" : number_or_nothing(sum, "{:.0f}");
}

bool has_run(const ReproducedRow& row) { return row.verdict != Verdict::none; }

/// Rows of one item next to each other.
struct Item {
  const PublishedRow* first;
  std::vector<const ReproducedRow*> rows;
};

std::vector<Item> items_with_runs(const std::vector<ReproducedRow>& rows) {
  std::vector<Item> items;
  for (const ReproducedRow& row : rows) {
    if (items.empty() || items.back().first->item_name() != row.row->item_name()) items.push_back({row.row, {}});
    items.back().rows.push_back(&row);
  }
  std::erase_if(items, [](const Item& item) { return std::ranges::none_of(item.rows, [](const auto* row) { return has_run(*row); }); });
  return items;
}

TextTable item_table(const Item& item) {
  TextTable table{{"row", "published", "measured", "difference", "seeds", "budget", "CPU s", "commit", "verdict"},
                  {false, true, true, true, true, true, true, false, false},
                  {}};
  for (const ReproducedRow* row : item.rows) {
    const std::string share = row->count == 0 || row->row->timing() ? "" : fmt::format("{:.3g} %", 100 * row->share);
    table.rows.push_back({row->row->row, published_text(*row), measured_text(*row), number_or_nothing(row->difference, "{:+.4g}"),
                          seeds_text(*row), share, processor_time(*row),
                          over_seeds(*row, [](const Measurement& seed) { return seed.commit; }), state_of(*row)});
  }
  return table;
}

std::string heading(const PublishedResults& published, const Item& item) {
  const PublishedPaper& paper = published.papers.at(item.first->paper);
  return fmt::format("{} {}, {}: {}", paper.authors, paper.year, item.first->item, item.first->title);
}

/// What is told of a missed row.
std::vector<std::string> explanations(const Item& item) {
  std::vector<std::string> lines;
  for (const ReproducedRow* row : item.rows)
    if (row->verdict == Verdict::missed)
      lines.push_back(fmt::format("{}: {}", row->row->row, row->row->explanation.empty() ? "unexplained." : row->row->explanation));
  return lines;
}

std::string note_of(const Item& item) {
  std::set<std::string> notes;
  for (const ReproducedRow* row : item.rows) notes.insert(row->row->note);
  return notes.size() == 1 ? *notes.begin() : "";
}

std::string curves(const Item& item) {
  std::vector<std::filesystem::path> runs;
  for (const ReproducedRow* row : item.rows)
    for (const Measurement& seed : row->seeds)
      if (!seed.run.empty() && seed.state != "unreadable") runs.push_back(seed.run);
  if (runs.empty()) return "";
  report::StudyBuilder builder("", {});
  read_runs(runs, report::report_request(), [&](RunData&& run) { builder.take(std::move(run)); });
  std::string html;
  for (const report::Figure& figure : report::learning_figures(builder.finish()))
    html += fmt::format("<figure><h3>{}</h3>{}<figcaption>{}</figcaption></figure>\n", report::escape(figure.title), report::draw(figure),
                        report::escape(figure.caption));
  return "<div class=\"figures\">\n" + html + "</div>\n";
}

std::string html_table(const TextTable& table) {
  const auto cells = [&](const std::vector<std::string>& row, const char* tag) {
    std::string text = "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      text += fmt::format("<{0}{1}>{2}</{0}>", tag, table.numeric[i] ? " class=\"number\"" : "", report::escape(row[i]));
    return text + "</tr>";
  };
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table><thead>" + cells(table.header, "th") + "</thead><tbody>";
  for (const auto& row : table.rows) html += cells(row, "td");
  return html + "</tbody></table></div>\n";
}

}  // namespace

TextTable reproduction_table(const std::vector<ReproducedRow>& rows) {
  TextTable table{{"item", "row", "published", "measured", "seeds", "state"}, {false, false, true, true, true, false}, {}};
  for (const ReproducedRow& row : rows)
    table.rows.push_back({row.row->item_name(), row.row->row, published_text(row), measured_text(row), seeds_text(row), state_of(row)});
  return table;
}

std::string reproduction_summary(const std::vector<ReproducedRow>& rows) {
  std::map<Verdict, int> values, judged;
  int printed = 0, criteria = 0, timings = 0, timed = 0;
  for (const ReproducedRow& row : rows) {
    if (row.row->timing()) {
      ++timings;
      timed += row.count > 0;
    } else if (row.row->kind != "curve" && row.row->certainty == "printed") {
      ++printed;
      ++values[row.verdict];
    } else if (row.row->judge) {
      ++criteria;
      ++judged[row.verdict];
    }
  }
  const auto counts = [](std::map<Verdict, int>& of) {
    const int sum = of[Verdict::matched] + of[Verdict::better] + of[Verdict::missed] + of[Verdict::diverged];
    return fmt::format("{} measured at the published budget ({} matched, {} better, {} missed, {} diverged), {} with part of it", sum,
                       of[Verdict::matched], of[Verdict::better], of[Verdict::missed], of[Verdict::diverged], of[Verdict::part]);
  };
  return fmt::format("{} printed results: {}.\n{} curves with a criterion: {}.\n{} printed times: {} measured.\n", printed, counts(values),
                     criteria, counts(judged), timings, timed);
}

std::string reproduction_markdown(const PublishedResults& published, const std::vector<ReproducedRow>& rows) {
  std::string text =
      "# Reproduction\n\nPublished results next to measured ones, written by `stiefel reproduce report`. "
      "`experiments/published.yaml` has what was published and the criterion of each curve; a value matches when it is worse by no more "
      "than\n";
  std::vector<std::string> tolerances;
  for (const auto& [metric, tolerance] : published.tolerances) tolerances.push_back(fmt::format("{} ({})", tolerance, metric));
  text += fmt::format(
      "{}. A question mark stands behind a published value that is not certain. A commit with + had changes. "
      "CPU seconds are those of all seeds together.\n\n{}",
      fmt::join(tolerances, ", "), reproduction_summary(rows));
  for (const Item& item : items_with_runs(rows)) {
    text += fmt::format("\n## {}\n\n", heading(published, item));
    if (const std::string note = note_of(item); !note.empty()) text += note + "\n\n";
    text += fmt::format("`stiefel reproduce {}`\n\n{}", item.first->item_name(), markdown(item_table(item)));
    for (const std::string& line : explanations(item)) text += "\n- " + line;
    if (!explanations(item).empty()) text += "\n";
  }
  return text;
}

std::string reproduction_page(const PublishedResults& published, const std::vector<ReproducedRow>& rows) {
  const std::string style = std::string(report::page_css) + report::figure_css;
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src {}\">\n"
      "<title>Reproduction</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n<header><h1>Published results next to measured ones</h1>"
      "<p class=\"lead\">{}</p></header>\n",
      report::content_hash(style), style, report::escape(reproduction_summary(rows)));
  for (const Item& item : items_with_runs(rows)) {
    html += fmt::format("<section><h2>{}</h2><p class=\"note\">{}</p><div class=\"panel\">{}</div>\n",
                        report::escape(heading(published, item)), report::escape(note_of(item)), html_table(item_table(item)));
    for (const std::string& line : explanations(item)) html += "<p>" + report::escape(line) + "</p>\n";
    html += curves(item) + "</section>\n";
  }
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace stiefel::cli
