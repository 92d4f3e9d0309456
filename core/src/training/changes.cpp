#include "training/changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include <stiefel/error.hpp>

#include "base/json_text.hpp"
#include "base/number_from.hpp"
#include "base/suggestion.hpp"
#include "config/resolved.hpp"

namespace stiefel {
namespace {

using Values = std::map<std::string, std::string>;

Values configuration(const RunHeader& header) {
  Values values = flat_configuration(header.yaml, "/config/yaml of results.h5");
  std::erase_if(values, [](const auto& item) { return !affects_results(item.first); });
  return values;
}

constexpr std::array names_of_build = {"version",     "git_commit", "git_diff_sha256", "compiler", "cxx_flags",
                                       "simd_target", "blas",       "blas_core"};

/// Whether the value follows from the CPU and OpenBLAS, so that another host may still have the old one.
bool is_of_host(const std::string& name) { return name == "simd_target" || name == "blas" || name == "blas_core"; }

Values surroundings(const RunHeader& header) {
  Values values;
  for (const auto& [name, text] : header.provenance)
    if (std::ranges::count(names_of_build, name)) values[name] = text;
  for (const PluginRow& plugin : header.plugins) {
    const bool shared = std::ranges::count(header.plugins, plugin.name, &PluginRow::name) > 1;  // with another role
    const std::string name = "plugin:" + (shared ? plugin.kind + " " : "") + plugin.name;
    values[name] = plugin.sha256;
    if (plugin.is_part()) values[name + " versions"] = plugin.version;
  }
  for (const DatasetRow& data : header.datasets) values["data:" + data.name] = data.sha256;
  return values;
}

Values values_of(const RunHeader& header) {
  Values values = configuration(header);
  values.merge(surroundings(header));
  return values;
}

/// Calls use(name, value) for each change in a text of Segment::changes. The value is null if it no longer exists.
template <class F> void for_each_change(const std::string& changes, F&& use) {
  if (changes.empty()) return;
  try {
    const nlohmann::json changed = parse_json(changes);
    for (const auto& [name, value] : changed.items()) use(name, value);
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("/provenance/segments/changes of results.h5 is damaged: {}", error.what()), Exit::damaged);
  }
}

void add_changes(const Values& before, const Values& now, std::vector<Change>& found) {
  Values all = before;
  all.insert(now.begin(), now.end());
  for (const auto& item : all) {
    const auto value = [&](const Values& values) {
      const auto at = values.find(item.first);
      return at == values.end() ? std::nullopt : std::optional(at->second);
    };
    if (value(before) != value(now)) found.push_back({item.first, value(before), value(now)});
  }
}

}  // namespace

std::string lines_of_values(const RunHeader& header) {
  std::string lines;
  for (const auto& [name, value] : values_of(header)) lines += name + "=" + value + "\n";
  return lines;
}

std::string checksum(const RunHeader& header, const std::string& file) {
  for (const DatasetRow& data : header.datasets)
    if (("/" + data.path).ends_with("/" + file)) return data.sha256;
  return {};
}

namespace {

/// Whether the change only renames a data file, in the configuration or in the list of data files.
bool only_renames(const Change& change, const RunHeader& before, const RunHeader& now) {
  if (change.was && change.is) {
    const std::string sum = checksum(before, *change.was);
    return !sum.empty() && sum == checksum(now, *change.is);
  }
  const RunHeader& other = change.was ? now : before;
  return change.name.starts_with("data:") &&
         std::ranges::count(other.datasets, change.was ? *change.was : *change.is, &DatasetRow::sha256) > 0;
}

bool is_of_program(const Change& change) {
  return std::ranges::count(names_of_build, change.name) > 0 || change.name.starts_with("plugin:");
}

/// Whether the key did not exist when the run began, and is not set now.
bool is_new_default(const Change& change, const std::vector<std::string>& origins) {
  return !change.was && std::ranges::find(origins, change.name + "=default") != origins.end();
}

/// Throws Error for a name that the run neither had nor has, which is probably misspelled.
void demand_known(const std::vector<std::string>& allowed, const std::vector<Change>& found, const Values& before,
                  const Values& now) {
  std::set<std::string> known = {"all"};
  for (const Change& change : found) known.insert(change.name);
  for (const Values* values : {&before, &now})
    for (const auto& item : *values) known.insert(item.first);
  for (const std::string& name : allowed)
    if (!known.contains(name))
      throw Error(fmt::format("--allow-change: '{}' is not a key, plugin or data file of this run{}", name,
                              suggestion(name, {known.begin(), known.end()})));
}

}  // namespace

std::vector<Change> changes(const RunHeader& before, const RunHeader& now) {
  std::vector<Change> found;
  Values was = values_of(before);
  for (const Segment& segment : before.segments)
    for_each_change(segment.changes, [&](const std::string& name, const nlohmann::json& value) {
      if (value.is_null())
        was.erase(name);
      else
        was[name] = value;
    });
  add_changes(was, values_of(now), found);
  std::erase_if(found, [&](const Change& change) { return only_renames(change, before, now); });
  return found;
}

bool has_other_settings(const RunHeader& run, const LoadedExperiment& loaded) {
  RunHeader now;
  now.yaml = loaded.resolved_yaml;
  return std::ranges::any_of(changes(run, now), [&](const Change& change) {
    return !is_of_program(change) && !change.name.starts_with("data:") && !is_new_default(change, loaded.origins);
  });
}

bool only_lengthens(const Change& change, const std::vector<std::string>& origins) {
  const auto number = [](const std::optional<std::string>& text) {
    return text ? number_from<double>(*text).value_or(0) : 0;
  };
  const double was = number(change.was), is = number(change.is);
  if (change.name == "train.steps" || change.name == "train.epochs") return true;
  if (change.name == "train.patience") return is == 0 || (was > 0 && is > was);
  if (change.name == "train.target") return is == 0;
  return is_of_program(change) || is_new_default(change, origins);
}

std::vector<Change> changes_of_data(const RunHeader& before, const RunHeader& now) {
  std::vector<Change> found = changes(before, now);
  std::erase_if(found, [](const Change& change) { return !change.name.starts_with("data:"); });
  return found;
}

std::vector<std::string> changed_by_resuming(const RunHeader& header) {
  std::vector<std::string> names;
  for (const Segment& segment : header.segments)
    for_each_change(segment.changes, [&](const std::string& name, const nlohmann::json&) {
      if (!is_of_host(name) && !std::ranges::count(names, name)) names.push_back(name);
    });
  return names;
}

std::string allowed_changes(const RunHeader& before, const RunHeader& now, const std::vector<std::string>& allowed,
                            const FixedKeys& fixed) {
  const auto names = [&](const std::string& name) {
    return std::find(allowed.begin(), allowed.end(), name) != allowed.end();
  };
  const std::vector<Change> found = changes(before, now);
  demand_known(allowed, found, values_of(before), values_of(now));
  std::string lines, list;
  bool host_alone = true;
  nlohmann::ordered_json values;
  for (const Change& change : found) {
    values[change.name] = change.is ? nlohmann::ordered_json(*change.is) : nullptr;
    const std::string reason = change.was ? fixed.reason(change.name) : "";  // a new key had no value to keep
    if (!reason.empty())
      throw Error(fmt::format("{} cannot be changed in a run that has begun: {}; start another run with `stiefel run`",
                              change.name, reason));
    if (names(change.name) || names("all")) continue;
    lines += fmt::format("\n  {} was {} and is now {}", change.name, change.was.value_or("absent"),
                         change.is.value_or("absent"));
    list += (list.empty() ? "" : ",") + change.name;
    host_alone = host_alone && is_of_host(change.name);
  }
  if (!lines.empty())
    throw Error(fmt::format("this would change the run:{}\n{} with --allow-change {}", lines,
                            host_alone ? "Resume it on a host like the one that began it, or accept the change"
                                       : "Undo it, or accept it",
                            list),
                host_alone ? Exit::in_use : Exit::usage);
  return values.empty() ? "" : json_text(values);
}

}  // namespace stiefel
