#include "trainer/changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include <stiefel/error.hpp>

#include "config/resolved.hpp"
#include "config/tree.hpp"

namespace stiefel {
namespace {

using Values = std::map<std::string, std::string>;

/// Values by the paths of their keys; the entries of a list by their numbers.
void flatten(const Node& node, const std::string& path, Values& values) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (node.kind == Node::Kind::map)
    for (const Member& member : node.members) flatten(member.value, below(member.key), values);
  else if (node.kind == Node::Kind::sequence)
    for (std::size_t i = 0; i < node.items.size(); ++i) flatten(node.items[i], below(std::to_string(i)), values);
  else
    values[path] = node.text;
}

Values configuration(const RunHeader& header) {
  Values values;
  Problems problems;
  const std::optional<Node> tree = parse_yaml(header.yaml, "/config/yaml of results.h5", problems);
  if (!problems.empty()) throw Error(problems.text(), Exit::damaged);
  flatten(*tree, "", values);
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

void compare(const Values& before, const Values& now, std::vector<Change>& found) {
  Values all = before;
  all.insert(now.begin(), now.end());
  for (const auto& item : all) {
    const auto value = [&](const Values& values) {
      const auto at = values.find(item.first);
      return at == values.end() ? std::string("nothing") : at->second;
    };
    if (value(before) != value(now)) found.push_back({item.first, value(before), value(now)});
  }
}

}  // namespace

std::vector<Change> changes(const RunHeader& before, const RunHeader& now) {
  std::vector<Change> found;
  compare(configuration(before), configuration(now), found);
  compare(surroundings(before), surroundings(now), found);
  return found;
}

void refuse_changes(const RunHeader& before, const RunHeader& now, const std::vector<std::string>& allowed) {
  const auto names = [&](const std::string& name) { return std::find(allowed.begin(), allowed.end(), name) != allowed.end(); };
  if (names("all")) return;
  std::string lines, list;
  for (const Change& change : changes(before, now)) {
    if (names(change.name)) continue;
    lines += fmt::format("\n  {}: {} at the start of the run, now {}", change.name, change.was, change.is);
    list += (list.empty() ? "" : ",") + change.name;
  }
  if (!lines.empty())
    throw Error(fmt::format("the run would not go on as it began:{}\nUndo what has changed, or go on with other bits: --allow-change {}",
                            lines, list));
}

}  // namespace stiefel
