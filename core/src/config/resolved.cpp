// Two walks over the declarations of a reading.
#include "config/resolved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace stiefel {
namespace {

bool is_in_id(const Declaration& declaration) {
  const bool at_default = declaration.kind == Declaration::Kind::field && declaration.value == declaration.fallback;
  return declaration.affects_results && (declaration.in_id_at_default || !at_default);
}

/// The value of a field in the resolved YAML, or in what the ID is made of: there, a file has no folder.
Value written(const Declaration& field, bool all) {
  if (all || !field.part) return field.value;
  return std::filesystem::path(std::get<std::string>(field.value)).filename().string();
}

void write_section(const ConfigSchema& schema, const std::string& indent, std::string& out, bool all);

/// The lines of a section as an entry of a list: `- ` before the first, blanks before the others.
void write_entry(const ConfigSchema& schema, const std::string& indent, std::string& out, bool all) {
  std::string lines;
  write_section(schema, indent + "  ", lines, all);
  lines.replace(indent.size(), 2, "- ");
  out += lines;
}

void write_nested(const Declaration& declaration, const std::string& indent, std::string& out, bool all) {
  const std::string deeper = indent + "  ";
  if (declaration.kind == Declaration::Kind::periods)
    for (std::size_t i = 0; i < declaration.names.size(); ++i)
      out += fmt::format("{}{}: {}\n", deeper, quoted_text(declaration.names[i]), declaration.values[i]);
  else if (declaration.kind == Declaration::Kind::named)
    for (std::size_t i = 0; i < declaration.names.size(); ++i) {
      out += fmt::format("{}{}:\n", deeper, quoted_text(declaration.names[i]));
      write_section(*declaration.inner[i], deeper + "  ", out, all);
    }
  // A list of one group is written as the group itself, so both have the same ID.
  else if (declaration.kind == Declaration::Kind::list ||
           (declaration.kind == Declaration::Kind::groups && declaration.inner.size() > 1))
    for (const auto& inner : declaration.inner) write_entry(*inner, deeper, out, all);
  else
    for (const auto& inner : declaration.inner) write_section(*inner, deeper, out, all);
}

void write_section(const ConfigSchema& schema, const std::string& indent, std::string& out, bool all) {
  for (const auto& declaration : schema.own_section().declarations) {
    if (!all && !is_in_id(*declaration)) continue;
    if (declaration->kind == Declaration::Kind::plugin && declaration->inner.empty()) continue;  // absent
    out += indent + quoted_text(declaration->key) + ":";
    if (declaration->kind == Declaration::Kind::field) {
      out.append(" ").append(yaml_text(written(*declaration, all))).append("\n");
      continue;
    }
    std::string nested;
    write_nested(*declaration, indent, nested, all);
    out += nested.empty() ? " {}\n" : "\n" + nested;
  }
}

void collect(const ConfigSchema& schema, std::map<std::string, std::string>& places) {
  for (const auto& declaration : schema.own_section().declarations) {
    const std::string path = schema.own_section().path_of(declaration->key);
    if (declaration->given) places[path] = declaration->where.text();
    for (const auto& inner : declaration->inner) collect(*inner, places);
    const bool names = declaration->kind == Declaration::Kind::periods || declaration->kind == Declaration::Kind::named;
    for (std::size_t i = 0; names && declaration->node && i < declaration->node->members.size(); ++i)
      places[path + "." + declaration->node->members[i].key] = declaration->node->members[i].where.text();
    if (declaration->kind == Declaration::Kind::groups || declaration->kind == Declaration::Kind::list)
      for (const auto& inner : declaration->inner)
        places[inner->own_section().path] = inner->own_section().where.text();
  }
}

/// Those of the experiment's own keys, without those of plugins, on which no bit of a result depends.
const std::set<std::string>& keys_without_effect() {
  static const std::set<std::string> keys = [] {
    std::set<std::string> found;
    Problems missing;  // what is required
    Reading reading{nullptr, &missing};
    ConfigSchema schema(reading, "", nullptr, {});
    Experiment().describe(schema);
    for_each_key(schema, [&](const std::string& path, const Declaration& declaration) {
      if (!declaration.affects_results) found.insert(path);
    });
    return found;
  }();
  return keys;
}

void flatten(const Node& node, const std::string& path, std::map<std::string, std::string>& leaves) {
  const std::string below = path.empty() ? "" : path + ".";
  const auto is_leaf = [](const Node& item) {
    return item.kind == Node::Kind::scalar || item.kind == Node::Kind::null;
  };
  if (node.kind == Node::Kind::map) {
    for (const Member& member : node.members) flatten(member.value, below + member.key, leaves);
  } else if (is_leaf(node)) {
    leaves[path] = node.text;
  } else if (std::ranges::all_of(node.items, is_leaf)) {
    std::string text;
    for (const Node& item : node.items) text += (text.empty() ? "" : ", ") + item.text;
    leaves[path] = "[" + text + "]";
  } else {
    for (std::size_t i = 0; i < node.items.size(); ++i) flatten(node.items[i], below + std::to_string(i), leaves);
  }
}

}  // namespace

std::map<std::string, std::string> flat_configuration(const std::string& yaml, const std::string& file) {
  Problems problems;
  const std::optional<Node> root = parse_yaml(yaml, file, problems);
  if (!root) throw Error(problems.text(), Exit::damaged);
  std::map<std::string, std::string> leaves;
  flatten(*root, "", leaves);
  return leaves;
}

bool affects_results(const std::string& key) {
  for (std::size_t end = key.find('.'); end != key.npos; end = key.find('.', end + 1))
    if (keys_without_effect().contains(key.substr(0, end))) return false;
  return !keys_without_effect().contains(key);
}

std::string resolved_yaml(const ConfigSchema& schema) {
  std::string text;
  write_section(schema, "", text, true);
  return text;
}

std::string id_yaml(const ConfigSchema& schema) {
  std::string text;
  write_section(schema, "", text, false);
  return text;
}

std::vector<std::string> origins_of(const ConfigSchema& schema) {
  std::vector<std::string> origins;
  for_each_key(schema, [&](const std::string& path, const Declaration& declaration) {
    if (declaration.kind == Declaration::Kind::field)
      origins.push_back(path + "=" + (declaration.given ? declaration.where.origin() : "default"));
    if (declaration.kind == Declaration::Kind::periods && declaration.node)
      for (const Member& member : declaration.node->members)
        origins.push_back(path + "." + member.key + "=" + member.value.where.origin());
  });
  return origins;
}

std::map<std::string, std::string> places_of(const ConfigSchema& schema) {
  std::map<std::string, std::string> places;
  collect(schema, places);
  return places;
}

}  // namespace stiefel
