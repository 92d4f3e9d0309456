#include "results/analysis/report/tables.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <tuple>

#include "base/printable.hpp"
#include "results/analysis/report/encoding.hpp"
#include "results/analysis/report/scale.hpp"
#include "results/analysis/report/spread.hpp"
#include "results/analysis/report/svg_series.hpp"

namespace stiefel::report {
namespace {

constexpr std::size_t most_rows = 24, most_values = 6, most_tests = 4;

struct Table {
  std::string caption;
  std::vector<std::string> titles;
  std::vector<bool> numeric = {};                   ///< right-aligned columns
  std::vector<std::vector<std::string>> rows = {};  ///< texts, not markup
  std::vector<Style> swatches = {};                 ///< of the first rows: how figures draw them
};

/// Lets keys break between their parts, so that tables of many keys fit on paper.
std::string breakable(const std::string& html) {
  static const std::regex between_parts("\\.(?=[a-z_])");
  return std::regex_replace(html, between_parts, ".<wbr/>");
}

std::string markup(const Table& table) {
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>";
  if (!table.caption.empty()) html += "<caption>" + escape(table.caption) + "</caption>";
  const auto alignment = [&](std::size_t i) {
    return i < table.numeric.size() && table.numeric[i] ? " class=\"number\"" : "";
  };
  html += "<thead><tr>";
  for (std::size_t i = 0; i < table.titles.size(); ++i)
    html += fmt::format("<th scope=\"col\"{}>{}</th>", alignment(i),
                        breakable(escape(shortened(table.titles[i], longest_title))));
  html += "</tr></thead><tbody>";
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    html += "<tr>";
    for (std::size_t i = 0; i < table.rows[row].size(); ++i) {
      const std::string text = escape(table.rows[row][i]);
      html += i == 0 ? fmt::format("<th scope=\"row\"{}>{}{}</th>", table.swatches.empty() ? "" : " class=\"group\"",
                                   row < table.swatches.size() ? swatch(table.swatches[row]) : "", text)
                     : fmt::format("<td{}>{}</td>", alignment(i), text);
    }
    html += "</tr>";
  }
  return html + "</tbody></table></div>\n";
}

std::string folded(const std::string& summary, const std::string& content) {
  return fmt::format("<details><summary>{}</summary>{}</details>\n", escape(summary), content);
}

/// Markup of a table. Of a long one, the first rows are shown and the others can be opened.
std::string in_parts(Table table, const std::string& summary) {
  if (table.rows.size() <= most_rows) return markup(table);
  Table rest = table;
  rest.rows.erase(rest.rows.begin(), rest.rows.begin() + std::ptrdiff_t(most_rows));
  rest.swatches.clear();
  table.rows.resize(most_rows);
  return markup(table) + folded(counted(rest.rows.size(), "more " + summary), markup(rest));
}

std::string states_text(const std::vector<const RunData*>& runs) {
  std::map<std::string, int> counts;
  for (const RunData* run : runs) ++counts[run->status.state];
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) parts.push_back(fmt::format("{} {}", count, state));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string duration(double seconds) { return seconds > 0 ? duration_text(seconds) : "–"; }

std::string day(double seconds) { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time_t(seconds))); }

/// The values of a key in several runs as one text: only the first few if there are many.
std::string agreed(const std::set<std::string>& values) {
  std::vector<std::string> first(values.begin(),
                                 std::next(values.begin(), std::ptrdiff_t(std::min(values.size(), most_values))));
  return fmt::format("{}{}", fmt::join(first, "; "),
                     values.size() > most_values ? fmt::format("; … ({} in all)", values.size()) : "");
}

std::string provenance_of(const Study& study, const std::string& name) {
  std::set<std::string> values;
  for (const RunData* run : study.runs())
    if (const std::string* value = run->header.find_provenance(name)) values.insert(*value);
  return agreed(values);
}

/// Metrics that runs measured on their test sets, in addition to the metric of the study.
std::vector<Metric> test_metrics(const Study& study) {
  std::vector<Metric> metrics;
  const auto known = [&](const std::string& name) {
    return name == study.metric.name ||
           std::any_of(metrics.begin(), metrics.end(), [&](const Metric& metric) { return metric.name == name; });
  };
  const std::string before = "/final/";
  for (const RunData* run : study.runs())
    for (const RunDataset& dataset : run->datasets) {
      if (!dataset.path.starts_with(before + "test_") || dataset.is_text || metrics.size() == most_tests) continue;
      const std::string name = dataset.path.substr(before.size());
      if (!known(name)) metrics.push_back({name, readable(name)});
    }
  return metrics;
}

}  // namespace

std::string swatch(const Style& style) {
  return fmt::format(
      "<svg class=\"swatch\" viewBox=\"0 0 18 10\" aria-hidden=\"true\"><path class=\"line {}\" d=\"M0 5H18\"/></svg>",
      style_class(style));
}

std::string plain_table(const std::vector<std::string>& titles, const std::vector<bool>& numeric,
                        const std::vector<std::vector<std::string>>& rows) {
  return markup({"", titles, numeric, rows});
}

std::string summary_of(const Study& study) {
  std::string text = fmt::format("{} in {}: {}.", counted(study.runs().size(), "run"),
                                 counted(study.groups.size(), "group"), states_text(study.runs()));
  if (!study.unreadable.empty()) text += fmt::format(" {} could not be read.", study.unreadable.size());
  for (const std::string& doubt : study.doubts) text += " " + capitalised(doubt) + ".";
  return text;
}

std::string origin(const Study& study) {
  double first = INFINITY, last = -INFINITY;
  const auto possible = [](double time) { return time > 0 && time < 1e11; };
  for (const RunData* run : study.runs())
    for (const Segment& segment : run->header.segments)
      if (possible(segment.started) && possible(segment.ended))
        first = std::min(first, segment.started), last = std::max(last, segment.ended);
  std::string text = fmt::format("stiefel {}, commit {}; {}; threads: {}", provenance_of(study, "version"),
                                 shortened(provenance_of(study, "git_commit"), 13), provenance_of(study, "cpu_model"),
                                 provenance_of(study, "threads"));
  if (std::isfinite(first) && first > 0 && last >= first)
    text += day(first) == day(last) ? "; " + day(first) : fmt::format("; {} to {}", day(first), day(last));
  return text + ".";
}

std::string networks_of(const Study& study) {
  static constexpr std::array kinds = {std::tuple("task.plugin", "Task", "Tasks"),
                                       std::tuple("cell.plugin", "Cell", "Cells"),
                                       std::tuple("recurrent.plugin", "Map", "Maps")};
  std::string text;
  for (const auto& [key, one, several] : kinds) {
    std::set<std::string> names;
    for (const RunData* run : study.runs())
      for (const auto& [have, value] : run->configuration)
        if (have.ends_with(key)) names.insert(value);
    if (!names.empty())
      text +=
          fmt::format(" {}: {}.", names.size() == 1 ? one : several, boost::replace_all_copy(agreed(names), ";", ","));
  }
  return text;
}

std::string summary_table(const Study& study) {
  const std::string label = study.metric.label;
  const std::vector<Metric> tests = test_metrics(study);
  const auto has_baseline = [](const Group& group) { return std::isfinite(baseline_of(group)); };
  const bool baseline = std::any_of(study.groups.begin(), study.groups.end(), has_baseline);
  const bool quartiles = std::any_of(study.groups.begin(), study.groups.end(), [&](const Group& group) {
    return values_of(group, study.metric).size() >= least_for_quartiles;
  });
  Table table{
      fmt::format("Medians over the finished runs; {}: {}.", label,
                  study.metric.is_path()              ? "the last value"
                  : study.metric.name == "train_loss" ? "at the best evaluation, or the last if none was selected"
                                                      : "at the best evaluation"),
      {"group", "runs", label},
      {false, false}};
  const bool several = std::any_of(study.groups.begin(), study.groups.end(),
                                   [&](const Group& group) { return values_of(group, study.metric).size() > 1; });
  if (quartiles) table.titles.push_back("25 to 75%");
  if (several) table.titles.push_back("best");
  for (const Metric& test : tests) table.titles.push_back(test.label);
  if (baseline) {
    table.titles.push_back("baseline loss");
    table.caption += " Baseline: the loss of the constant predictor on the test set.";
  }
  table.titles.insert(table.titles.end(), {"parameters", "steps", "wall time"});
  table.numeric.resize(table.titles.size(), true);
  for (const Group& group : study.shown()) table.swatches.push_back(group.style);
  for (const Group& group : study.groups) {
    const std::vector<double> values = values_of(group, study.metric);
    std::vector<const RunData*> runs;
    std::vector<double> steps, seconds;
    for (const RunData& run : group.runs) {
      runs.push_back(&run);
      if (run.status.state != "finished") continue;
      steps.push_back(double(run.committed_step));
      if (const double time = wall_seconds(run.header.segments); time > 0) seconds.push_back(time);
    }
    std::vector<std::string> row{group.label, states_text(runs), number_text(quantile(values, 0.5))};
    if (quartiles)
      row.push_back(values.size() < least_for_quartiles
                        ? "–"
                        : number_text(quantile(values, 0.25)) + " to " + number_text(quantile(values, 0.75)));
    if (several)
      row.push_back(study.metric.better == Better::unknown
                        ? "–"
                        : number_text(quantile(values, study.metric.better == Better::higher ? 1 : 0)));
    for (const Metric& test : tests) row.push_back(number_text(quantile(values_of(group, test), 0.5)));
    if (baseline) row.push_back(number_text(baseline_of(group)));
    row.insert(row.end(), {group.parameters > 0 ? std::to_string(group.parameters) : "–",
                           number_text(quantile(steps, 0.5), 8), duration(quantile(seconds, 0.5))});
    table.rows.push_back(std::move(row));
  }
  return in_parts(std::move(table), "group");
}

std::string configuration_tables(const Study& study) {
  std::map<std::string, std::set<std::string>> values;
  for (const RunData* run : study.runs())
    for (const auto& [key, value] : run->configuration) values[key].insert(value);
  std::string html;
  if (!study.keys.empty()) {
    Table table{"Keys that distinguish the groups.", {"group"}};
    table.titles.insert(table.titles.end(), study.keys.begin(), study.keys.end());
    for (const Group& group : study.shown()) table.swatches.push_back(group.style);
    for (const Group& group : study.groups) {
      table.rows.push_back({group.label});
      for (const std::string& key : study.keys) table.rows.back().push_back(value_of(group.runs.front(), key));
    }
    html = in_parts(std::move(table), "group");
  }
  Table others{"", {"key"}}, common{"", {"key", "value"}};
  for (const Group& group : study.shown()) others.titles.push_back(group.label);
  for (const auto& [key, found] : values) {
    const auto has = [&, name = &key](const RunData* run) { return run->configuration.contains(*name); };
    const auto runs = study.runs();
    if (found.size() == 1 && std::all_of(runs.begin(), runs.end(), has)) {
      common.rows.push_back({key, *found.begin()});
      continue;
    }
    others.rows.push_back({key});
    for (const Group& group : study.shown()) {
      std::set<std::string> of_group;
      for (const RunData& run : group.runs) of_group.insert(value_of(run, key));
      others.rows.back().push_back(agreed(of_group));
    }
  }
  if (!others.rows.empty())
    html += folded(counted(others.rows.size(), "key that differs", "keys that differ") + ", of the groups in figures",
                   markup(others));
  return html + folded(counted(common.rows.size(), "key") + " that all runs share", markup(common));
}

std::string provenance_table(const Study& study) {
  Table table{"", {"what", "value"}};
  std::vector<std::string> names;
  for (const RunData* run : study.runs())
    for (const auto& [name, value] : run->header.provenance)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  for (const std::string& name : names) table.rows.push_back({name, provenance_of(study, name)});
  std::map<std::string, std::set<std::string>> plugins, data;
  for (const RunData* run : study.runs()) {
    for (const PluginRow& plugin : run->header.plugins)
      plugins[plugin.kind + " " + plugin.name].insert(
          fmt::format("version {}, build {}", plugin.version, shortened(plugin.build_id, 17)));
    for (const DatasetRow& row : run->header.datasets)
      data["data " + row.name].insert(fmt::format("{} bytes, sha256 {}", row.bytes, row.sha256));
  }
  for (const auto* rows : {&plugins, &data})
    for (const auto& [name, values] : *rows) table.rows.push_back({name, agreed(values)});
  return folded("Source, libraries, machines, plugins and data", markup(table));
}

std::string runs_table(const Study& study) {
  Table table{"",
              {"folder", "group", "seed", "state", "steps", study.metric.label, "wall time", "id"},
              {false, false, true, false, true, true, true}};
  for (const Group& group : study.groups)
    for (const RunData& run : group.runs) {
      const std::string message =
          run.status.state == "finished" || run.status.message.empty() ? "" : ": " + run.status.message;
      table.rows.push_back({run.path.string(), group.label, value_of(run, "seed"), run.status.state + message,
                            std::to_string(run.committed_step), number_text(study.metric.of(run)),
                            duration(wall_seconds(run.header.segments)), run.header.run_id});
    }
  std::string html = folded(counted(study.runs().size(), "run"), markup(table));
  if (study.unreadable.empty()) return html;
  Table unreadable{"Not in this report.", {"folder", "reason"}};
  for (const RunData& run : study.unreadable) unreadable.rows.push_back({run.path.string(), run.unreadable});
  return html + markup(unreadable);
}

}  // namespace stiefel::report
