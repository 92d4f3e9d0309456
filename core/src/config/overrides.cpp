// Grammar of an override: key ('.' key)* '=' value, a key a word, a number (entry of a list, from 0) or a text in
// double quotes.
#include "config/overrides.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/number_from.hpp"
#include "base/printable.hpp"
#include "config/experiment.hpp"
#include "config/scalars.hpp"

namespace stiefel {
namespace {

/// Keys of the path at the front of `text`, which then begins with '='; empty when the grammar is violated.
std::vector<std::string> split_path(std::string_view& text) {
  std::vector<std::string> keys;
  while (true) {
    std::size_t end = 0;
    if (text.starts_with('"')) {
      end = text.find('"', 1);
      if (end == std::string_view::npos) return {};
      keys.emplace_back(text.substr(1, end - 1));
      ++end;
    } else {
      end = std::min(text.find_first_of(".="), text.size());
      keys.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(end);
    if (keys.back().empty() || text.empty()) return {};
    if (text[0] == '=') return keys;
    if (text[0] != '.') return {};
    text.remove_prefix(1);
  }
}

/// The entry of a list that `key` names, or null and a problem.
Node* list_entry(Node& list, const std::string& key, const Override& override, Problems& problems) {
  if (const auto index = number_from<std::size_t>(key); index && *index < list.items.size()) return &list.items[*index];
  problems.add(override.where, list.items.empty()
                                   ? fmt::format("{}: the list is empty", override.path)
                                   : fmt::format("{}: this is a list with entries 0 to {}; there is no entry '{}'",
                                                 override.path, list.items.size() - 1, key));
  return nullptr;
}

Node* child(Node& node, const std::string& key, const Override& override, Problems& problems) {
  if (node.kind == Node::Kind::sequence) return list_entry(node, key, override, problems);
  if (node.kind == Node::Kind::scalar) {
    node.abbreviated = true;
    node.text_where = node.where;
  }
  if (node.kind != Node::Kind::map) node.where = override.where;
  node.kind = Node::Kind::map;
  if (Member* member = node.find(key)) return &member->value;
  node.members.push_back({key, override.where, {}});
  return &node.members.back().value;
}

/// Options of the plugin named so far must not reach the new one.
void drop_options(Node& node, const std::string& plugin, bool optimizer) {
  const Member* named = node.find("plugin");
  const std::string& before = named ? named->value.text : node.text;
  if (before == plugin) return;
  if (node.kind == Node::Kind::scalar) node.kind = Node::Kind::map;
  node.abbreviated = false;
  node.text.clear();
  std::erase_if(node.members, [&](const Member& member) {
    return optimizer && plugin == "frozen" ? member.key != "blocks" : !is_beside_options(member.key);
  });
}

/// A mapping that is one of a plugin's; `optimizer: adam` of one file and a rate of another make an abbreviated one.
bool names_plugin(const Node& node) {
  const auto kept = [](const Member& member) { return is_beside_options(member.key); };
  return node.kind == Node::Kind::map &&
         (node.find("plugin") || (node.abbreviated && std::ranges::any_of(node.members, kept)));
}

/// `key.path=null`: as if the key had not been given.
void remove(Node& root, const Override& override, Problems& problems) {
  Node* node = &root;
  for (std::size_t i = 0; i + 1 < override.keys.size() && node; ++i) {
    if (node->kind == Node::Kind::sequence) {
      node = list_entry(*node, override.keys[i], override, problems);
      if (!node) return;
    } else {
      Member* member = node->find(override.keys[i]);
      node = member ? &member->value : nullptr;
    }
  }
  if (node && node->kind == Node::Kind::sequence) {
    problems.add(override.where,
                 fmt::format("{}: entries of a list cannot be removed; write the list out", override.path));
    return;
  }
  const auto is_it = [&](const Member& member) { return member.key == override.keys.back(); };
  const bool removed = node && std::erase_if(node->members, is_it) > 0;
  if (!removed && override.where == Location{})  // a sweep may name what only some of its runs have
    problems.add({}, fmt::format("{0}=null removes a key, but {0} is not given; leave this out", override.path));
}

void apply(Node& root, Override& override, Problems& problems) {
  if (override.value.is_null) return remove(root, override, problems);
  Node* node = &root;
  for (std::size_t i = 0; i < override.keys.size(); ++i) {
    const std::string& key = override.keys[i];
    if (i + 1 == override.keys.size() && key == "plugin" && override.value.kind == Node::Kind::scalar)
      drop_options(*node, override.value.text, override.keys[0] == "optimizer");
    Node* parent = node;
    node = child(*parent, key, override, problems);
    if (!node) return;
    if (Member* member = parent->find(key); member && i + 1 == override.keys.size()) member->where = override.where;
  }
  if (override.value.kind == Node::Kind::scalar && names_plugin(*node)) {  // optimizer=sgd
    drop_options(*node, override.value.text, override.keys[0] == "optimizer");
    node = child(*node, "plugin", override, problems);
  }
  *node = std::move(override.value);
}

}  // namespace

std::optional<Override> parse_override(const std::string& text, Problems& problems) {
  Override result;
  result.text = text;
  std::string_view rest = text;
  result.keys = split_path(rest);
  if (result.keys.empty()) {
    problems.add(
        {}, fmt::format("'{}' is not of the form key.path=value, for example model.cell.hidden=256", shortened(text)));
    return std::nullopt;
  }
  result.path = text.substr(0, text.size() - rest.size());
  if (printable(result.path) != result.path) {
    problems.add({}, fmt::format("'{}' must be UTF-8 without control characters", shortened(result.path)));
    return std::nullopt;
  }
  Problems faults;
  std::optional<Node> value = parse_word(rest.substr(1), faults);
  if (!value) {
    std::string sentence = faults.text();
    sentence.erase(0, Location{}.text().size());
    problems.add({}, result.path + sentence);
    return std::nullopt;
  }
  if (!faults.empty()) {
    problems.add({}, fmt::format("{}: the value is a mapping with a duplicate or merge key", result.path));
    return std::nullopt;
  }
  if (result.keys.size() > deepest_level) {
    problems.add({}, fmt::format("'{}' has {} keys; at most {} are allowed", shortened(result.path), result.keys.size(),
                                 deepest_level));
    return std::nullopt;
  }
  if (result.keys[0] == "extends") {
    problems.add({}, "extends cannot be given on the command line; write it into a file");
    return std::nullopt;
  }
  result.value = std::move(*value);
  return result;
}

bool is_within(const Override& inner, const Override& outer) {
  return inner.keys.size() >= outer.keys.size() && std::equal(outer.keys.begin(), outer.keys.end(), inner.keys.begin());
}

std::vector<std::string> keys_of_path(std::string_view path) {
  const std::string with_value = std::string(path) + "=";
  std::string_view rest = with_value;
  std::vector<std::string> keys = split_path(rest);
  return rest == "=" ? keys : std::vector<std::string>();
}

void apply_overrides(Node& root, std::vector<Override> overrides, Problems& problems) {
  const std::vector<Override> all = overrides;
  std::stable_partition(
      overrides.begin(), overrides.end(), [&](const Override& override) {  // first what says for whom the others are
        return override.keys.back() == "plugin" || std::ranges::any_of(all, [&](const Override& other) {
                 return other.keys != override.keys && is_within(other, override);
               });
      });
  for (Override& override : overrides) apply(root, override, problems);
}

void apply_overrides(Node& root, std::span<const std::string> overrides, Problems& problems) {
  std::vector<Override> parsed;
  for (const std::string& text : overrides) {
    std::optional<Override> override = parse_override(text, problems);
    if (!override) continue;
    const auto same = std::ranges::find(parsed, override->keys, &Override::keys);
    if (same != parsed.end())
      problems.add({}, fmt::format("{} is given twice: {} and {}", override->path, same->text, override->text));
    else
      parsed.push_back(std::move(*override));
  }
  apply_overrides(root, std::move(parsed), problems);
}

}  // namespace stiefel
