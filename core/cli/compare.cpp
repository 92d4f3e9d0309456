// `stiefel compare DIR…`: a table of runs, those that differ only by the seed in one row.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>
#include <stiefel/error.hpp>
#include "base/json_text.hpp"
#include "base/number_from.hpp"
#include "base/printable.hpp"
#include "base/say.hpp"
#include "results/analysis/comparison.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "results/analysis/labels.hpp"
#include "results/analysis/significance.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"
#include "cli/table_text.hpp"
#include "cli/working.hpp"

namespace stiefel::cli {
namespace {

ComparedQuantity quantity_of(const Arguments& arguments) {
  ComparedQuantity quantity{arguments.value("--metric"), {}, arguments.value("--at")};
  if (!arguments.has("--reach")) return quantity;
  const std::string text = arguments.value("--reach");
  quantity.reach = number_from<double>(text);
  if (!quantity.reach || !std::isfinite(*quantity.reach))
    throw Error(fmt::format("--reach must be a finite number, got '{}'", text));
  return quantity;
}

struct Unreadable {
  std::string path, reason;
};

struct ComparableRuns {
  std::vector<ComparedRun> runs;
  std::vector<Unreadable> unreadable;
  std::set<std::string> metrics;  ///< names for --metric
};

/// The runs that can be read and meet the conditions. Throws Error if there are none.
ComparableRuns read_all(const Arguments& arguments) {
  const std::vector<std::filesystem::path> paths = find_runs(arguments.positional);
  if (paths.empty()) throw Error(fmt::format("there are no runs in {}", fmt::join(arguments.positional, ", ")));
  const ComparedQuantity quantity = quantity_of(arguments);
  ComparableRuns found;
  read_runs(paths, comparison_request(quantity.metric), [&](RunData&& run) {
    if (!run.unreadable.empty()) {
      found.unreadable.push_back({run.path.string(), run.unreadable});
      return;
    }
    found.runs.push_back(compared_run(run, quantity));
    for (const RunDataset& dataset : run.datasets)
      found.metrics.insert(dataset.path.substr(dataset.path.rfind('/') + 1));
  });
  for (const auto& [path, reason] : found.unreadable) say("unreadable: {}: {}\n", printable(path), printable(reason));
  if (found.runs.empty()) throw Error(fmt::format("none of the {} runs can be read", paths.size()), Exit::damaged);
  keep_where(found.runs, arguments.values("--where"));
  return found;
}

/// Throws Error for a metric that is recorded only for the final model: there is no step at which it was reached.
void demand_evaluations(const std::vector<ComparedRun>& runs) {
  std::set<std::string> common = runs.front().reachable;
  for (const ComparedRun& run : runs)
    std::erase_if(common, [&](const std::string& name) { return !run.reachable.contains(name); });
  for (const ComparedRun& run : runs) {
    if (run.metric.empty() || run.reachable.contains(run.metric)) continue;
    const std::string alike = "valid" + run.metric.substr(std::min(run.metric.find('_'), run.metric.size()));
    throw Error(fmt::format("--reach: {} records {} of its final model only; {}", run.path.string(), run.metric,
                            common.empty()
                                ? "the runs have no metric in common that every evaluation records"
                                : fmt::format("choose one that every evaluation records, such as --metric {}",
                                              common.contains(alike) ? alike : *common.rbegin())));
  }
}

/// Throws Error for a metric that no run has: its name is probably misspelled.
void demand_metric(const Comparison& comparison, const Arguments& arguments, const std::vector<ComparedRun>& runs,
                   const std::set<std::string>& known) {
  const std::string metric = arguments.value("--metric");
  if (arguments.has("--at") && comparison.metric.empty())
    throw Error(
        fmt::format("--at: no run has recorded {} at the length {}; an experiment names lengths in record.lengths",
                    metric.empty() ? "its metric" : metric, arguments.value("--at")));
  if (!metric.empty() && comparison.metric.empty()) refuse_metric(metric, known);
  if (arguments.has("--reach") && !comparison.metric.empty() && comparison.better == Better::unknown)
    throw Error(
        fmt::format("--reach: the runs do not record whether a higher or a lower {} is better", comparison.metric));
  if (arguments.has("--reach")) demand_evaluations(runs);
}

std::string number_or_dash(double value, const char* form) {
  return std::isnan(value) ? "-" : fmt::format(fmt::runtime(form), value);
}

std::string states_text(const ComparedGroup& group) {
  std::string text;
  for (const auto& [state, count] : group.states)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  return text;
}

std::string with_spread(const Statistics& statistics, const char* form) {
  if (statistics.count < 2) return number_or_dash(statistics.mean, form);
  return with_deviation(statistics.mean, statistics.deviation);
}

/// What a table shows in addition to the statistics.
struct Further {
  Labels labels;
  bool reach = false, interval = false;
  std::optional<std::size_t> reference = std::nullopt;  ///< the group that others are tested against
  std::vector<PairedTest> tests = {};                   ///< of each group; of the reference without a meaning

  bool tests_group(std::size_t group) const { return reference && *reference != group; }
};

/// The group with the best mean; nothing if none has a mean, or if it is not known which values are better.
std::optional<std::size_t> best_group(const Comparison& comparison) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < comparison.groups.size() && comparison.better != Better::unknown; ++i) {
    const double mean = comparison.groups[i].value.mean;
    const double before = best ? comparison.groups[*best].value.mean : std::nan("");
    if (!std::isnan(mean) && !(comparison.better == Better::lower ? before <= mean : before >= mean)) best = i;
  }
  return best;
}

/// "optimizer.rate=0.01,model.cell.plugin=elman": the values of a group.
std::string row_name(const Comparison& comparison, const ComparedGroup& group) {
  std::string name;
  for (std::size_t k = 0; k < comparison.keys.size(); ++k)
    name += fmt::format("{}{}={}", k > 0 ? "," : "", comparison.keys[k], group.values[k]);
  return name;
}

/// The group that --test names: "best", or conditions with commas between them that hold for one group.
std::size_t reference_group(const std::string& name, const Comparison& comparison) {
  if (name == "best") {
    if (const auto best = best_group(comparison)) return *best;
    throw Error(
        fmt::format("--test best: the runs do not record whether a higher or a lower {} is better; name a row, "
                    "as in --test KEY=VALUE",
                    comparison.metric));
  }
  const std::string example = row_name(comparison, comparison.groups.front());
  std::vector<Condition> conditions;
  for (const std::string& text : split_at(name, ",")) {
    if (text.find('=') != text.npos) conditions.emplace_back(text, "--test");
    if (conditions.empty() || std::ranges::find(comparison.keys, conditions.back().key()) == comparison.keys.end())
      throw Error(fmt::format("--test {}: write best, or the values of a row, such as {}", name, example));
  }
  const auto is_named = [&](const ComparedGroup& group) {
    return std::ranges::all_of(conditions,
                               [&](const Condition& condition) { return condition.holds(*group.runs.front()); });
  };
  const auto found = std::ranges::find_if(comparison.groups, is_named);
  if (const auto count = std::ranges::count_if(comparison.groups, is_named); count != 1)
    throw Error(fmt::format("--test {}: {} of the rows are so; name one by its values, such as {}", name,
                            count == 0 ? "none" : std::to_string(count), example));
  return std::size_t(found - comparison.groups.begin());
}

/// Text for people: few digits.
TextTable short_table(const Comparison& comparison, const Further& further) {
  TextTable table;
  const bool reach = further.reach;
  const auto column = [&](const std::string& name, bool numeric) {
    table.header.push_back(name);
    table.numeric.push_back(numeric);
  };
  for (const std::string& key : comparison.keys) column(further.labels.key(key, key), false);
  column(comparison.metric + (comparison.metric.empty() ? "mean ± std" : " mean ± std"), true);
  for (const char* name : {"median", "25–75%", "best"}) column(name, true);
  if (further.interval) column("95% CI", true);
  if (further.reference) column("p (pairs)", true);
  if (reach)
    for (const char* name : {"reached", "steps", "seconds"}) column(name, true);
  column("parameters", true);
  column("n", true);
  column("runs", false);
  const auto best = best_group(comparison);
  for (std::size_t i = 0; i < comparison.groups.size(); ++i) {
    const ComparedGroup& group = comparison.groups[i];
    std::vector<std::string> row;
    for (std::size_t k = 0; k < comparison.keys.size(); ++k)
      row.push_back(further.labels.value(comparison.keys[k], group.values[k]));
    const Statistics& value = group.value;
    if (best && comparison.groups.size() > 1 && value.mean == comparison.groups[*best].value.mean)
      table.bold.insert({i, row.size()});
    row.push_back(with_spread(value, "{:.4g}"));
    row.push_back(number_or_dash(value.median, "{:.4g}"));
    row.push_back(value.count < 2 ? "-" : fmt::format("{:.4g}–{:.4g}", value.lower, value.upper));
    row.push_back(number_or_dash(group.best(comparison.better), "{:.4g}"));
    if (const double half = half_confidence_interval(value); further.interval)
      row.push_back(std::isnan(half) ? "-" : fmt::format("{:.4g}–{:.4g}", value.mean - half, value.mean + half));
    if (further.tests_group(i))
      row.push_back(fmt::format("{} ({})", number_or_dash(further.tests[i].p, "{:.2g}"), further.tests[i].pairs));
    else if (further.reference)
      row.push_back("reference");
    if (reach) {
      row.push_back(fmt::format("{}/{}", group.steps.count, std::ranges::count_if(group.runs, &ComparedRun::finished)));
      row.push_back(with_spread(group.steps, "{:.6g}"));
      row.push_back(with_spread(group.seconds, "{:.4g}"));
    }
    row.push_back(group.parameters > 0 ? std::to_string(group.parameters) : "-");
    row.push_back(std::to_string(value.count));
    row.push_back(states_text(group));
    table.rows.push_back(std::move(row));
  }
  return table;
}

void demand_one_form(const Arguments& arguments) {
  const std::vector<std::string> forms = {"--csv", "--json", "--markdown", "--latex"};
  if (std::count_if(forms.begin(), forms.end(), [&](const std::string& form) { return arguments.has(form); }) > 1)
    throw Error(fmt::format("the table has one format at a time; choose one of {}", fmt::join(forms, ", ")));
}

using Json = nlohmann::ordered_json;

Json json_of(const Statistics& statistics) {
  return {{"n", statistics.count},   {"mean", statistics.mean},     {"std", statistics.deviation},
          {"q25", statistics.lower}, {"median", statistics.median}, {"q75", statistics.upper},
          {"min", statistics.least}, {"max", statistics.largest}};
}

Json json_of(const ComparedRun& run, bool reach) {
  Json json{{"path", run.path.string()}, {"state", run.state}, {"seed", run.text("seed")}, {"value", run.value}};
  if (reach) json["steps"] = run.reached_step, json["seconds"] = run.reached_seconds;
  return json;
}

/// JSON for programs: every digit, every run.
Json json_of(const Comparison& comparison, const std::vector<Unreadable>& unreadable, const Further& further) {
  const bool reach = further.reach;
  static const std::map<Better, const char*> words = {
      {Better::lower, "lower"}, {Better::higher, "higher"}, {Better::unknown, "unknown"}};
  Json document{{"metric", comparison.metric}, {"better", words.at(comparison.better)}, {"groups", Json::array()}};
  for (std::size_t number = 0; number < comparison.groups.size(); ++number) {
    const ComparedGroup& group = comparison.groups[number];
    Json keys = Json::object(), runs = Json::array();
    for (std::size_t i = 0; i < comparison.keys.size(); ++i) keys[comparison.keys[i]] = group.values[i];
    for (const ComparedRun* run : group.runs) runs.push_back(json_of(*run, reach));
    Json item{{"keys", keys}, {"value", json_of(group.value)}, {"best", group.best(comparison.better)}};
    if (const double half = half_confidence_interval(group.value); further.interval)
      item["ci95"] = {group.value.mean - half, group.value.mean + half};
    if (further.tests_group(number))
      item["test"] = {{"p", further.tests[number].p}, {"pairs", further.tests[number].pairs}};
    else if (further.reference)
      item["test"] = "reference";
    if (reach) item["steps"] = json_of(group.steps), item["seconds"] = json_of(group.seconds);
    item["parameters"] = group.parameters > 0 ? Json(group.parameters) : Json();
    item["states"] = group.states;
    item["runs"] = runs;
    document["groups"].push_back(std::move(item));
  }
  document["unreadable"] = Json::array();
  for (const auto& [path, reason] : unreadable) document["unreadable"].push_back({{"path", path}, {"reason", reason}});
  return document;
}

/// CSV for spreadsheets: every digit, a column for each number.
TextTable long_table(const Comparison& comparison, const Further& further) {
  TextTable table;
  const bool reach = further.reach;
  table.header = comparison.keys;
  for (const char* name : {"metric", "n", "mean", "std", "q25", "median", "q75", "best"})
    table.header.emplace_back(name);
  if (further.interval) table.header.insert(table.header.end(), {"ci95_low", "ci95_high"});
  if (further.reference) table.header.insert(table.header.end(), {"p", "pairs"});
  if (reach)
    for (const char* name :
         {"reached", "steps_mean", "steps_std", "steps_median", "seconds_mean", "seconds_std", "seconds_median"})
      table.header.emplace_back(name);
  for (const char* name : {"parameters", "runs", "states"}) table.header.emplace_back(name);
  const auto exact = [](double value) { return std::isnan(value) ? std::string() : fmt::format("{}", value); };
  for (std::size_t i = 0; i < comparison.groups.size(); ++i) {
    const ComparedGroup& group = comparison.groups[i];
    std::vector<std::string> row = group.values;
    const Statistics& value = group.value;
    row.push_back(comparison.metric);
    row.push_back(std::to_string(value.count));
    for (double x :
         {value.mean, value.deviation, value.lower, value.median, value.upper, group.best(comparison.better)})
      row.push_back(exact(x));
    if (const double half = half_confidence_interval(value); further.interval)
      for (const double x : {value.mean - half, value.mean + half}) row.push_back(exact(x));
    if (further.reference) {
      row.push_back(further.tests_group(i) ? exact(further.tests[i].p) : "");
      row.push_back(further.tests_group(i) ? std::to_string(further.tests[i].pairs) : "");
    }
    if (reach) {
      row.push_back(std::to_string(group.steps.count));
      for (const Statistics* s : {&group.steps, &group.seconds})
        for (double x : {s->mean, s->deviation, s->median}) row.push_back(exact(x));
    }
    row.push_back(group.parameters > 0 ? std::to_string(group.parameters) : "");
    row.push_back(std::to_string(group.runs.size()));
    row.push_back(states_text(group));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

int compare_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("compare", words);
  if (arguments.positional.empty()) throw Error("name folders of runs: stiefel compare DIR...");
  demand_one_form(arguments);
  const ComparableRuns found = read_all(arguments);
  Comparison comparison =
      compare(found.runs, arguments.has("--by") ? arguments.words("--by") : differing_keys(found.runs));
  demand_metric(comparison, arguments, found.runs, found.metrics);
  warn_of_failures(arguments.positional);
  for (const std::string& doubt : doubts(found.runs, comparison)) print_warning(doubt);
  const bool reach = arguments.has("--reach");
  const std::string sort = arguments.value("--sort");
  if (!reach && (sort == "steps" || sort == "seconds")) throw Error(fmt::format("--sort {} needs --reach", sort));
  if (!sort.empty()) sort_groups(comparison, sort);
  if (arguments.has("--label") && (arguments.has("--json") || arguments.has("--csv")))
    throw Error("--label is for tables that people read; --json and --csv have the keys and values themselves");
  Further further{Labels(arguments.values("--label"), comparison.keys, found.runs), reach, arguments.has("--ci")};
  if (arguments.has("--test")) {
    further.reference = reference_group(arguments.value("--test"), comparison);
    for (const ComparedGroup& group : comparison.groups)
      further.tests.push_back(signed_rank_test(group, comparison.groups[*further.reference]));
  }
  if (arguments.has("--json"))
    fmt::print("{}\n", json_text(json_of(comparison, found.unreadable, further), 2));
  else if (arguments.has("--csv"))
    fmt::print("{}", csv(long_table(comparison, further)));
  else if (arguments.has("--markdown"))
    fmt::print("{}", markdown(short_table(comparison, further)));
  else if (arguments.has("--latex"))
    fmt::print("{}", latex(short_table(comparison, further)));
  else
    fmt::print("{}", aligned(short_table(comparison, further)));
  return int(found.unreadable.empty() ? Exit::done : Exit::damaged);
}

}  // namespace stiefel::cli
