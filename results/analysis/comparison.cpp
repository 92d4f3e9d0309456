// Groups runs, and computes statistics of the groups.
#include "results/analysis/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/trim.hpp>
#include <cmath>
#include <compare>
#include <cstdint>
#include <regex>
#include <set>
#include <utility>

#include <stiefel/error.hpp>

#include "base/number_from.hpp"
#include "base/suggestion.hpp"
#include "config/resolved.hpp"

namespace stiefel {
namespace {

std::optional<double> number_of(const std::string& text) {
  const std::optional<double> value = number_from<double>(text);
  return value && std::isnan(*value) ? std::nullopt : value;
}

constexpr std::array sortable = {"mean", "std", "median", "best", "n", "parameters", "steps", "seconds"};

/// The number that groups are sorted by: the smallest first, NaN last.
double rank(const ComparedGroup& group, const std::string& by, Better better) {
  const double sign = better == Better::higher ? -1 : 1;
  if (by == "mean") return sign * group.value.mean;
  if (by == "median") return sign * group.value.median;
  if (by == "best") return sign * group.best(better);
  if (by == "std") return group.value.deviation;
  if (by == "n") return double(group.value.count);
  if (by == "parameters")
    return group.parameters > 0 ? double(group.parameters) : std::numeric_limits<double>::quiet_NaN();
  return by == "steps" ? group.steps.mean : group.seconds.mean;
}

void summarise(ComparedGroup& group) {
  std::vector<double> values, steps, seconds;
  std::set<std::int64_t> parameters;
  for (const ComparedRun* run : group.runs) {
    ++group.states[run->state];
    if (run->parameters > 0) parameters.insert(run->parameters);
    if (!run->finished()) continue;
    values.push_back(run->value);
    steps.push_back(run->reached_step);
    seconds.push_back(run->reached_seconds);
  }
  group.value = statistics_of(values);
  group.steps = statistics_of(steps);
  group.seconds = statistics_of(seconds);
  if (parameters.size() == 1) group.parameters = *parameters.begin();
}

/// Sets the metric of the comparison and its direction. Ignores runs without a value; throws Error if the others have
/// different metrics.
void settle_metric(const std::vector<ComparedRun>& runs, Comparison& comparison) {
  std::set<std::string> metrics;
  for (const ComparedRun& run : runs) {
    if (run.metric.empty()) continue;
    metrics.insert(run.metric);
    if (run.better != Better::unknown) comparison.better = run.better;
  }
  if (metrics.size() > 1)
    throw Error(
        fmt::format("the runs select their best model by different metrics ({}): choose one with --metric, or name "
                    "fewer folders",
                    fmt::join(metrics, ", ")));
  if (!metrics.empty()) comparison.metric = *metrics.begin();
}

}  // namespace

std::string with_deviation(double mean, double deviation) {
  const double decimals = 1 - std::floor(std::log10(deviation));
  if (!std::isfinite(mean) || !(decimals <= 6)) return fmt::format("{:.4g} ± {:.2g}", mean, deviation);
  const int places = std::max(int(decimals), 0);
  return fmt::format("{:.{}f} ± {:.{}f}", mean, places, deviation, places);
}

double quantile(std::vector<double> values, double share) {
  std::erase_if(values, [](double x) { return std::isnan(x); });
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const double at = share * double(values.size() - 1);
  const std::size_t below = std::size_t(at);
  const double between = at - double(below);
  return between == 0 ? values[below] : values[below] + between * (values[below + 1] - values[below]);
}

Statistics statistics_of(std::vector<double> values) {
  std::erase_if(values, [](double x) { return std::isnan(x); });
  Statistics found;
  found.count = values.size();
  if (values.empty()) return found;
  std::sort(values.begin(), values.end());
  double sum = 0, squares = 0;
  for (double x : values) sum += x;
  found.mean = std::clamp(sum / double(values.size()), values.front(), values.back());  // equal values deviate by 0
  for (double x : values) squares += (x - found.mean) * (x - found.mean);
  if (values.size() > 1) found.deviation = std::sqrt(squares / double(values.size() - 1));
  found.lower = quantile(values, 0.25), found.median = quantile(values, 0.5), found.upper = quantile(values, 0.75);
  found.least = values.front(), found.largest = values.back();
  return found;
}

double ComparedGroup::best(Better better) const {
  if (better == Better::unknown) return std::numeric_limits<double>::quiet_NaN();
  return better == Better::higher ? value.largest : value.least;
}

bool comes_before(const std::string& a, const std::string& b) {
  const auto x = number_of(a), y = number_of(b);
  if (x && y && *x != *y) return *x < *y;
  if (x.has_value() != y.has_value()) return x.has_value();
  return a < b;
}

namespace {

/// The order of two texts as numbers; unordered if one is not a number. Integers are compared exactly.
std::partial_ordering order_of(const std::string& a, const std::string& b) {
  if (const auto x = number_from<std::int64_t>(a), y = number_from<std::int64_t>(b); x && y) return *x <=> *y;
  const auto x = number_of(a), y = number_of(b);
  return x && y ? *x <=> *y : std::partial_ordering::unordered;
}

}  // namespace

Condition::Condition(const std::string& text, const std::string& option) {
  const std::size_t at = text.find_first_of("=<>!");
  const bool two = at != text.npos && text[at] != '=' && text.substr(at + 1).starts_with('=');
  if (at == text.npos || at == 0 || (text[at] == '!' && !two))
    throw Error(
        fmt::format("{} {}: a condition must be key=value, or have !=, <, <=, > or >= instead of =", option, text));
  key_ = boost::trim_copy(text.substr(0, at));
  sign_ = text.substr(at, two ? 2 : 1);
  value_ = boost::trim_copy(text.substr(at + sign_.size()));
  if ((sign_[0] == '<' || sign_[0] == '>') && !number_of(value_))
    throw Error(fmt::format("{} {}: {} is not a number", option, text, value_));
}

bool Condition::holds(const ComparedRun& run) const {
  const std::string all = run.text(key_);
  const std::size_t last = all.rfind(changed_to);
  const std::string have = last == all.npos ? all : all.substr(last + changed_to.size());
  const std::partial_ordering order = order_of(have, value_);
  if (sign_ == "<") return order < 0;
  if (sign_ == "<=") return order <= 0;
  if (sign_ == ">") return order > 0;
  if (sign_ == ">=") return order >= 0;
  return (order == 0 || have == value_) == (sign_ == "=");
}

std::string repetition_of(const ComparedRun& run) {
  const std::string fold = run.text("task.fold"), folds = run.text("task.folds");
  return run.text("seed") + (folds == "-" || folds == "0" ? "" : " and fold " + fold);
}

std::vector<std::string> differing_keys(const std::vector<ComparedRun>& runs) {
  std::set<std::string> differing;
  for (const ComparedRun& run : runs)
    for (const auto& [key, value] : run.configuration) differing.insert(key);
  std::erase_if(differing, [&](const std::string& key) {
    return key == "seed" || key == "task.fold" || key == "name" || key.starts_with("record.") ||
           !affects_results(key) || std::all_of(runs.begin(), runs.end(), [&](const ComparedRun& run) {
             return run.text(key) == runs.front().text(key);
           });
  });
  const auto everywhere = [&](const std::string& key) {
    return std::all_of(runs.begin(), runs.end(),
                       [&](const ComparedRun& run) { return run.configuration.contains(key); });
  };
  const auto of_a_method = [&](const std::string& key) {  // an option of a plugin that differs between runs
    for (std::size_t end = key.find('.'); end != key.npos; end = key.find('.', end + 1))
      if (differing.contains(key.substr(0, end) + ".plugin")) return true;
    return false;
  };
  const auto always_shown = [&](const std::string& key) {
    static const std::set<std::string> names = {"task.plugin", "model.cell.plugin", "model.recurrent.plugin",
                                                "optimizer.plugin", "optimizer.rate"};
    static const std::regex number(R"((\.layers)?\.\d+(?=\.))");  // number of a layer or of an optimizer group
    return everywhere(key) && names.contains(std::regex_replace(key, number, ""));
  };
  std::vector<std::string> keys(differing.begin(), differing.end());
  std::stable_partition(keys.begin(), keys.end(), everywhere);
  std::stable_partition(keys.begin(), keys.end(), [](const std::string& key) { return key.ends_with(".plugin"); });
  std::vector<std::size_t> group(runs.size(), 0);  // of each run: equal values of the keys so far
  std::erase_if(keys, [&](const std::string& key) {
    std::map<std::pair<std::size_t, std::string>, std::size_t> numbers;
    std::vector<std::size_t> refined;
    for (std::size_t i = 0; i < runs.size(); ++i)
      refined.push_back(numbers.try_emplace({group[i], runs[i].text(key)}, numbers.size()).first->second);
    const bool adds_nothing = std::exchange(group, refined) == refined;
    return adds_nothing && !always_shown(key) && (of_a_method(key) || !everywhere(key));
  });
  return keys;
}

void demand_key(const std::vector<ComparedRun>& runs, const std::string& key) {
  std::set<std::string> keys{"name", "id", "state"};
  for (const ComparedRun& run : runs)
    for (const auto& [have, value] : run.configuration) keys.insert(have);
  if (!keys.contains(key))
    throw Error(fmt::format("no run has the key {}{}", key,
                            suggestion(key, std::vector<std::string>(keys.begin(), keys.end()))));
}

void keep_where(std::vector<ComparedRun>& runs, const std::vector<std::string>& conditions) {
  for (const std::string& text : conditions) {
    const Condition condition(text);
    demand_key(runs, condition.key());
    std::erase_if(runs, [&](const ComparedRun& run) { return !condition.holds(run); });
    if (runs.empty()) throw Error(fmt::format("no run matches --where {}", text));
  }
}

Comparison compare(const std::vector<ComparedRun>& runs, const std::vector<std::string>& keys) {
  Comparison comparison{keys, "", Better::unknown, {}};
  for (const std::string& key : keys) demand_key(runs, key);
  settle_metric(runs, comparison);
  std::map<std::vector<std::string>, std::vector<const ComparedRun*>> groups;
  for (const ComparedRun& run : runs) {
    std::vector<std::string> values;
    for (const std::string& key : keys) values.push_back(run.text(key));
    groups[values].push_back(&run);
  }
  for (auto& [values, members] : groups) {
    ComparedGroup group;
    group.values = values;
    group.runs = members;
    summarise(group);
    comparison.groups.push_back(std::move(group));
  }
  std::sort(comparison.groups.begin(), comparison.groups.end(), [](const ComparedGroup& a, const ComparedGroup& b) {
    return std::lexicographical_compare(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                                        comes_before);
  });
  return comparison;
}

std::vector<std::string> doubts(const std::vector<ComparedRun>& runs, const Comparison& comparison) {
  std::vector<std::string> found;
  const std::vector<std::string> keys = differing_keys(runs);
  std::size_t repeated = 0;
  for (const ComparedGroup& group : comparison.groups) {
    std::map<std::vector<std::string>, std::vector<const ComparedRun*>> alike;  // by seed and all keys that matter
    for (const ComparedRun* run : group.runs) {
      if (!run->finished()) continue;
      std::vector<std::string> values{repetition_of(*run)};
      for (const std::string& key : keys) values.push_back(run->text(key));
      alike[values].push_back(run);
    }
    for (const auto& [values, copies] : alike)
      if (copies.size() > 1 && ++repeated <= 3)
        found.push_back(fmt::format("{} runs in one row have seed {}, {} and {} among them; n counts each of them",
                                    copies.size(), values.front(), copies[0]->path.string(), copies[1]->path.string()));
  }
  if (repeated > 3) found.push_back(fmt::format("{} more seeds are counted several times in their row", repeated - 3));
  // Plugins are compared over all rows, because another build also explains a difference between rows. Data are
  // compared within a row, because rows may use different data.
  std::set<std::string> plugins, scripts, data, tasks;
  std::map<std::string, std::string> sums;
  for (const ComparedRun& run : runs)
    for (const PluginRow& plugin : run.plugins)
      if (sums.emplace(plugin.kind + " " + plugin.name, plugin.sha256).first->second != plugin.sha256)
        (plugin.is_part() ? scripts : plugins).insert(plugin.name);
  for (const ComparedGroup& group : comparison.groups) {
    sums.clear();
    std::set<std::string> of_group;
    for (const ComparedRun* run : group.runs) {
      of_group.insert(run->text("task.plugin"));
      for (const DatasetRow& set : run->data)
        if (sums.emplace(set.name, set.sha256).first->second != set.sha256) data.insert(set.name);
    }
    if (of_group.size() > 1) tasks.merge(of_group);
  }
  if (!tasks.empty())
    found.push_back(fmt::format("runs in one row have different tasks: {}; choose one with --where task.plugin={}",
                                fmt::join(tasks, ", "), *tasks.begin()));
  if (!plugins.empty())
    found.push_back(fmt::format("the runs were made with different builds of a plugin: {}", fmt::join(plugins, ", ")));
  if (!scripts.empty())
    found.push_back(fmt::format("the runs were made with different contents of {}", fmt::join(scripts, ", ")));
  if (!data.empty())
    found.push_back(fmt::format("runs in one row were made with different contents of {}", fmt::join(data, ", ")));
  return found;
}

void sort_groups(Comparison& comparison, const std::string& by) {
  const auto key = std::find(comparison.keys.begin(), comparison.keys.end(), by);
  const auto place = std::size_t(key - comparison.keys.begin());
  if (key == comparison.keys.end() && std::find(sortable.begin(), sortable.end(), by) == sortable.end())
    throw Error(fmt::format("--sort {}: the table has no such column; sort by {}{}{} (the last two with --reach)", by,
                            fmt::join(comparison.keys, ", "), comparison.keys.empty() ? "" : ", ",
                            fmt::join(sortable, ", ")));
  if (by == "best" && key == comparison.keys.end() && comparison.better == Better::unknown)
    throw Error(
        fmt::format("--sort best: the runs do not record whether a higher or a lower {} is better", comparison.metric));
  std::stable_sort(comparison.groups.begin(), comparison.groups.end(),
                   [&](const ComparedGroup& a, const ComparedGroup& b) {
                     if (key != comparison.keys.end()) return comes_before(a.values[place], b.values[place]);
                     const double x = rank(a, by, comparison.better), y = rank(b, by, comparison.better);
                     return std::isnan(y) ? !std::isnan(x) : x < y;
                   });
}

}  // namespace stiefel
