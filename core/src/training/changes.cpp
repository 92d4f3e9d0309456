#include "training/changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include "base/json_text.hpp"

#include <stiefel/error.hpp>

#include "config/resolved.hpp"

namespace stiefel {
namespace {

using Values = std::map<std::string, std::string>;

Values configuration(const RunHeader& header) {
  Values values = flat_configuration(header.yaml, "/config/yaml of results.h5");
  std::erase_if(values, [](const auto& item) { return !affects_results(item.first); });
  return values;
}

Values surroundings(const RunHeader& header) {
  static constexpr std::array names = {"version",     "git_commit", "git_diff_sha256", "compiler", "cxx_flags",
                                       "simd_target", "blas",       "blas_core"};
  Values values;
  for (const auto& [name, text] : header.provenance)
    if (std::find(names.begin(), names.end(), name) != names.end()) values[name] = text;
  for (const PluginRow& plugin : header.plugins) values["plugin:" + plugin.name] = plugin.sha256;
  for (const DatasetRow& data : header.datasets) values["data:" + data.name] = data.sha256;
  return values;
}

Values values_of(const RunHeader& header) {
  Values values = configuration(header);
  values.merge(surroundings(header));
  return values;
}

/// By a text as of Segment::changes.
void change(Values& values, const std::string& changes) {
  if (changes.empty()) return;
  try {
    const nlohmann::json changed = parse_json(changes);
    for (const auto& [name, value] : changed.items())
      if (value.is_null())
        values.erase(name);
      else
        values[name] = value;
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

std::vector<Change> changes(const RunHeader& before, const RunHeader& now) {
  std::vector<Change> found;
  Values was = values_of(before);
  for (const Segment& segment : before.segments) change(was, segment.changes);
  add_changes(was, values_of(now), found);
  return found;
}

std::vector<Change> changes_of_data(const RunHeader& before, const RunHeader& now) {
  std::vector<Change> found = changes(before, now);
  std::erase_if(found, [](const Change& change) { return !change.name.starts_with("data:"); });
  return found;
}

std::string allowed_changes(const RunHeader& before, const RunHeader& now, const std::vector<std::string>& allowed) {
  const auto names = [&](const std::string& name) {
    return std::find(allowed.begin(), allowed.end(), name) != allowed.end();
  };
  std::string lines, list;
  nlohmann::ordered_json values;
  for (const Change& change : changes(before, now)) {
    values[change.name] = change.is ? nlohmann::ordered_json(*change.is) : nullptr;
    if (names(change.name) || names("all")) continue;
    lines += fmt::format("\n  {}: {} before, now {}", change.name, change.was.value_or("nothing"),
                         change.is.value_or("nothing"));
    list += (list.empty() ? "" : ",") + change.name;
  }
  if (!lines.empty())
    throw Error(fmt::format(
        "the run would not continue as it began:{}\nUndo the changes, or accept different bits with --allow-change {}",
        lines, list));
  return values.empty() ? "" : json_text(values);
}

}  // namespace stiefel
