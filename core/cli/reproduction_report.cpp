#include "cli/reproduction_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "base/atomic_file.hpp"
#include "base/file_content.hpp"
#include "results/analysis/report/encoding.hpp"
#include "results/analysis/report/page.hpp"
#include "results/analysis/report/svg.hpp"
#include "results/analysis/report/tables.hpp"

#include "cli/reproduction_figures.hpp"

namespace stiefel::cli {
namespace {

std::string number_or_nothing(double value, const char* form) {
  return std::isnan(value) ? "" : fmt::format(fmt::runtime(form), value);
}

std::size_t diverged_seeds(const ReproducedRow& row) {
  return std::size_t(std::ranges::count_if(
      row.seeds, [](const Measurement& seed) { return seed.state == "diverged" && seed.share >= 1; }));
}

/// Whether a run of some seed has not ended.
bool lacks_seeds(const ReproducedRow& row) { return row.count + diverged_seeds(row) < row.row->seeds.size(); }

/// How many seeds have runs that ended, as "2/3" or "3/3, 1 diverged".
std::string seeds_text(const ReproducedRow& row) {
  if (row.row->timing() || row.row->seeds.size() == 1 || row.verdict == Verdict::none) return "";
  const std::size_t diverged = diverged_seeds(row);
  return fmt::format("{}/{}{}", row.count + diverged, row.row->seeds.size(),
                     diverged > 0 ? fmt::format(", {} diverged", diverged) : "");
}

/// The distinct texts of the seeds, separated by commas.
template <class F> std::string over_seeds(const ReproducedRow& row, F&& text_of) {
  std::set<std::string> texts;
  for (const Measurement& seed : row.seeds)
    if (!seed.state.empty() && !text_of(seed).empty()) texts.insert(text_of(seed));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string processor_time(const ReproducedRow& row) {
  double sum = 0;
  for (const Measurement& seed : row.seeds)
    if (is_finished_with(seed, row.share)) sum += seed.cpu_seconds;
  return row.count == 0 || row.row->timing() ? "" : number_or_nothing(sum, "{:.0f}");
}

/// Whether a printed value is outside its tolerance.
bool deviates(const ReproducedRow& row) {
  return row.row->kind != "curve" && (row.verdict == Verdict::better || row.verdict == Verdict::missed);
}

bool has_run(const ReproducedRow& row) { return row.verdict != Verdict::none; }

/// An item with its consecutive rows and its figures.
struct Item {
  const PublishedRow* first;
  std::vector<const ReproducedRow*> rows;
  std::vector<report::Figure> figures;
};

std::vector<Item> items_of(const std::vector<ReproducedRow>& rows) {
  std::vector<Item> items;
  for (const ReproducedRow& row : rows) {
    if (items.empty() || items.back().first->item_name() != row.row->item_name()) items.push_back({row.row, {}, {}});
    items.back().rows.push_back(&row);
  }
  for (Item& item : items) item.figures = reproduction_figures(item.rows);
  return items;
}

/// A table with a line for each item, including those that have not been run.
TextTable overview(const std::vector<Item>& items) {
  TextTable table{{"item", "title", "rows", "measured", "matched", "upwards", "downwards", "missed", "diverged"},
                  {false, false, true, true, true, true, true, true, true},
                  {}};
  for (const Item& item : items) {
    std::map<Verdict, int> count;
    int upwards = 0, downwards = 0;
    for (const ReproducedRow* row : item.rows)
      if (deviates(*row))
        ++(row->difference > 0 ? upwards : downwards);
      else
        ++count[row->verdict];
    const auto number = [](int total) { return total == 0 ? "" : std::to_string(total); };
    using enum Verdict;
    const std::string measured = number(count[shown] + count[remembered] + count[matched] + count[missed] +
                                        count[diverged] + upwards + downwards);
    const auto begun = std::ranges::find_if(item.rows, [](const ReproducedRow* row) { return has_run(*row); });
    const ReproducedRow& shown_row = begun == item.rows.end() ? *item.rows.front() : **begun;
    table.rows.push_back({item.first->item_name(), item.first->title, std::to_string(item.rows.size()),
                          measured.empty() ? state_of(shown_row) : measured, number(count[matched]), number(upwards),
                          number(downwards), number(count[missed]), number(count[diverged])});
  }
  return table;
}

TextTable item_table(const Item& item) {
  const std::string& metric = item.rows.front()->row->metric;
  const bool one = std::ranges::all_of(
      item.rows, [&](const auto* row) { return row->row->metric == metric && !row->row->timing(); });
  const bool curves = std::ranges::any_of(item.rows, [](const auto* row) { return !end_text(*row).empty(); }) &&
                      std::ranges::all_of(item.rows, [](const auto* row) { return std::isnan(row->difference); });
  TextTable table{{"row", "published", one ? "measured " + metric_words(metric) : "measured",
                   curves ? "at the end" : "difference", "seeds", "budget", "CPU s", "commit", "verdict"},
                  {false, true, true, true, true, true, true, false, false},
                  {}};
  for (const ReproducedRow* row : item.rows) {
    const std::string share =
        row->count == 0 || row->row->timing()
            ? ""
            : fmt::format("{:.3g}%{}", 100 * row->share, row->row->own_budget() ? " of ours" : "");
    table.rows.push_back({row->row->row, published_text(*row), measured_text(*row),
                          curves ? end_text(*row) : number_or_nothing(row->difference, "{:+.4g}"), seeds_text(*row),
                          share, processor_time(*row),
                          over_seeds(*row, [](const Measurement& seed) { return seed.commit; }), state_of(*row)});
  }
  return table;
}

std::string heading(const PublishedResults& published, const Item& item) {
  const PublishedPaper& paper = published.papers.at(item.first->paper);
  return fmt::format("{} {}, {}: {}", paper.authors, paper.year, item.first->item, item.first->title);
}

/// The notes of rows, and the explanations of those that missed or diverged.
std::vector<std::string> remarks(const Item& item) {
  std::vector<std::string> lines;
  const auto add = [&](const PublishedRow& row, const std::string& text) {
    lines.push_back(fmt::format("{}: {}", row.row, text));
  };
  for (const ReproducedRow* row : item.rows) {
    const PublishedRow& published = *row->row;
    if (!published.note.empty()) add(published, published.note);
    if (row->verdict == Verdict::missed || row->verdict == Verdict::diverged)
      add(published, published.explanation.empty() ? "unexplained." : published.explanation);
  }
  return lines;
}

std::string figures_html(const Item& item) {
  std::string html;
  for (const report::Figure& figure : item.figures) html += report::figure_html(figure);
  return html.empty() ? "" : "<div class=\"figures\">\n" + html + "</div>\n";
}

std::string figures_markdown(const Item& item) {
  std::string text;
  for (const report::Figure& figure : item.figures)
    text += fmt::format(
        "\n<p><img src=\"figures/{}.svg\" width=\"420\" alt=\"{}\"><br><em>{}</em></p>\n", figure.id,
        report::escape(figure.description),
        report::escape(fmt::format("{}{}{}", figure.title, figure.caption.empty() ? "" : ". ", figure.caption)));
  return text;
}

std::string document_markdown(const PublishedResults& published, const std::string& summary, const TextTable& whole,
                              const std::vector<Item>& items) {
  std::vector<std::string> tolerances;
  for (const auto& [metric, tolerance] : published.tolerances)
    tolerances.push_back(fmt::format("{} ({})", tolerance, metric));
  std::string text =
      "# Reproduction\n\nPublished results next to measured ones, written by `stiefel reproduce report` from\n"
      "`experiments/papers/published.yaml`. `experiments/papers/statements.csv` lists what the papers say, sentence "
      "by\n"
      "sentence, and `experiments/papers/settings.csv` what else the files are made from.\n\n";
  for (const auto& [name, paper] : published.papers)
    if (!paper.outcome.empty())
      text += fmt::format("**{} {}** ({})\n\n{}\n\n", paper.authors, paper.year, name, paper.outcome);
  text += fmt::format(
      "{}\n{}\n## How rows are judged\n\n"
      "- A printed value matches when the mean over the seeds differs from it by no more than {}; otherwise it "
      "deviates upwards or downwards. `loss` stands for the mean squared error on TIMIT. \"Better\" and \"missed\" in "
      "the count of printed results are the deviations to the better and the worse side.\n"
      "- A curve matches when every seed that finished meets its criterion. "
      "\"Better than\" another row means better by any amount, in the mean over the seeds that both have; \"earlier "
      "than\" means at an earlier evaluation with each of these seeds. With several rows, it must hold for each. If "
      "one "
      "seed diverges, the row has diverged. \"A figure\" has no criterion. A criterion with † was written after its "
      "rows had been run.\n"
      "- For a curve, \"measured\" is the best value on the validation set, unless the item says otherwise. \"At the "
      "end\" are the last values of the seeds: a network that falls back has met its criterion all the same.\n"
      "- One seed unless \"seeds\" has a number. A row is judged by the seeds that have been run. CPU seconds are "
      "those of all seeds that finished.\n"
      "- \"of ours\" means that the paper does not say how long it trained. A run that train.patience ended counts "
      "as a whole one.\n"
      "- A question mark stands for an uncertain published value, which is not judged, \"quoted\" for one that the "
      "paper "
      "takes from another row of this list, and + for a commit whose source had changes. The commit is that of the "
      "program; the settings are those of the present file.\n"
      "- A gradient ratio is ‖∂L/∂h₁‖ / ‖∂L/∂h_T‖ at the last step that records gradients. The orthogonality drift is "
      "‖WᴴW − I‖_F at the end over its value before the first step.\n",
      summary, markdown(whole), fmt::join(tolerances, ", "));
  for (const Item& item : items) {
    text += fmt::format("\n## {}\n\n", heading(published, item));
    if (const std::string& note = item.first->item_note; !note.empty()) text += note + "\n\n";
    text += fmt::format("`stiefel reproduce {}`\n\n{}", item.first->item_name(), markdown(item_table(item)));
    for (const std::string& line : remarks(item)) text += "\n- " + line;
    if (!remarks(item).empty()) text += "\n";
    text += figures_markdown(item);
  }
  return text;
}

std::string table_html(const TextTable& table) {
  return "<div class=\"panel\">" + report::plain_table(table.header, table.numeric, table.rows) + "</div>\n";
}

std::string document_html(const PublishedResults& published, const std::string& summary, const TextTable& whole,
                          const std::vector<Item>& items) {
  std::string html = "<section>" + table_html(whole) + "</section>\n";
  for (const Item& item : items) {
    html += fmt::format("<section><h2>{}</h2><p class=\"note\">{}</p>{}", report::escape(heading(published, item)),
                        report::escape(item.first->item_note), table_html(item_table(item)));
    for (const std::string& line : remarks(item)) html += "<p>" + report::escape(line) + "</p>\n";
    html += figures_html(item) + "</section>\n";
  }
  return report::document("Published results next to measured ones", summary, "", html);
}

/// Replaces the figures that `document` shows by those of `items`.
void replace_figures(const std::filesystem::path& document, const std::vector<Item>& items) {
  const std::filesystem::path folder = document.parent_path() / "figures";
  std::set<std::string> stale;
  const std::string before = content_if_there(document).value_or("");
  const std::regex reference("src=\"figures/([a-z0-9_]+[.]svg)\"");
  for (std::sregex_iterator found(before.begin(), before.end(), reference), end; found != end; ++found)
    stale.insert((*found)[1]);
  for (const Item& item : items)
    for (const report::Figure& figure : item.figures) {
      std::filesystem::create_directories(folder);
      replace_file(folder / (figure.id + ".svg"), report::standalone_svg(figure));
      stale.erase(figure.id + ".svg");
    }
  for (const std::string& name : stale) std::filesystem::remove(folder / name);
}

/// How many seeds are from runs on this machine, if some of the recorded ones are not.
std::string own_text(const ReproducedRow& row) {
  const auto own = std::ranges::count_if(row.seeds, [](const Measurement&seed) { return !seed.run.empty(); }),
             all = std::ranges::count_if(row.seeds, [](const Measurement&seed) { return !seed.state.empty(); });
  return own > 0 && own < all ? fmt::format(", {} yours", own) : "";
}

}  // namespace

TextTable reproduction_table(const std::vector<ReproducedRow>& rows) {
  TextTable table{
      {"item", "row", "published", "measured", "seeds", "state"}, {false, false, true, true, true, false}, {}};
  for (const ReproducedRow& row : rows)
    table.rows.push_back({row.row->item_name(), row.row->row, published_text(row), measured_text(row),
                          seeds_text(row) + own_text(row), state_of(row)});
  return table;
}

std::string reproduction_summary(const std::vector<ReproducedRow>& rows) {
  std::map<Verdict, int> values, judged;
  int printed = 0, criteria = 0, timings = 0, timed = 0, own_budget = 0, few_seeds = 0, upwards = 0, downwards = 0;
  for (const ReproducedRow& row : rows) {
    if (row.row->timing()) {
      ++timings;
      timed += row.count > 0;
    } else if (row.row->kind != "curve" && row.row->printed()) {
      ++printed;
      if (deviates(row)) ++(row.difference > 0 ? upwards : downwards);
      ++values[row.verdict];
    } else if (row.row->judge && row.row->printed()) {
      ++criteria;
      ++judged[row.verdict];
      using enum Verdict;
      const bool judged_now = row.verdict == matched || row.verdict == missed || row.verdict == diverged;
      own_budget += judged_now && row.row->own_budget();
      few_seeds += judged_now && lacks_seeds(row);
    }
  }
  const auto counts = [](std::map<Verdict, int>& of) {
    const int sum = of[Verdict::matched] + of[Verdict::better] + of[Verdict::missed] + of[Verdict::diverged];
    return fmt::format(
        "{} run with the full budget ({} matched, {} better, {} missed, {} diverged), {} with part of it", sum,
        of[Verdict::matched], of[Verdict::better], of[Verdict::missed], of[Verdict::diverged], of[Verdict::part]);
  };
  return fmt::format(
      "{} printed results: {}.\nCounted on both sides, {} match, {} deviate upwards and {} downwards.\n{} curves with "
      "a criterion: {}; for {} of them, the paper does not give the budget, "
      "and {} seeds.\n{} printed times: {} measured.\n",
      printed, counts(values), values[Verdict::matched], upwards, downwards, criteria, counts(judged), own_budget,
      few_seeds == 1 ? "1 lacks some of its" : fmt::format("{} lack some of their", few_seeds), timings, timed);
}

void write_reproduction(const PublishedResults& published, const std::vector<ReproducedRow>& rows,
                        const std::filesystem::path& document, const std::filesystem::path& page) {
  std::vector<Item> items = items_of(rows);
  const TextTable whole = overview(items);
  std::erase_if(items, [](const Item& item) {
    return std::ranges::none_of(item.rows, [](const auto* row) { return has_run(*row); });
  });
  const std::string summary = reproduction_summary(rows);
  replace_figures(document, items);
  replace_file(document, document_markdown(published, summary, whole, items));
  replace_file(page, document_html(published, summary, whole, items));
}

}  // namespace stiefel::cli
