// Plugin nodes `{plugin: name, …options}`: the name chooses the plugin, the plugin's own describe() reads the rest.
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <set>

#include "config/config_schema.hpp"
#include "config/field_check.hpp"
#include "host/plugin_call.hpp"

namespace stiefel {
namespace {

std::string known_names(const Registry* registry, Role role) {
  const std::vector<std::string> names = registry ? registry->names(role) : std::vector<std::string>();
  return names.empty() ? fmt::format("no {} was found", name_of(role))
                       : fmt::format("choose from {}", fmt::join(names, ", "));
}

/// Where the section is, and the first option that each other file or the command line gives.
std::string places_text(const detail::Section& section) {
  std::string text = section.where.text();
  std::set<std::string> files = {section.where.file};
  for (const Member& member : section.node ? section.node->members : std::vector<Member>())
    if (files.insert(member.value.where.file).second) text += ", " + member.value.where.text();
  return text;
}

}  // namespace

void ConfigSchema::describe_options(PluginChoice& choice, const Entry& entry) {
  section_->noun = fmt::format("an option of the {} '{}'", name_of(entry.role), entry.name);
  section_->plugin = entry.name;
  section_->meaning = entry.meaning;
  choice.plugin = entry.name;
  choice.entry = &entry;
  static const std::filesystem::path nowhere;
  const Registry* registry = section_->reading->registry;
  const PluginCall call("describe", entry.name, registry ? registry->file_of(entry).path : nowhere);
  try {
    choice.options = std::shared_ptr<void>(entry.make_options(*this), entry.free_options);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(
        fmt::format("while reading the options of the {} '{}': {}", name_of(entry.role), entry.name, error.what()),
        Exit::plugin);
  }
  for (const auto& declaration : section_->declarations)
    if (declaration->part) choice.parts.push_back({std::get<std::string>(declaration->value), declaration->works_with});
}

void ConfigSchema::describe_plugin(PluginChoice& choice, Role role, const char* example, const Keys& beside) {
  const Registry* registry = section_->reading->registry;
  choice.where = fmt::format("{}: {}", places_text(*section_), section_->path);
  shorthand("plugin");
  if (!reads()) {
    const std::vector<std::string> names = registry->names(role);
    const bool have = std::ranges::find(names, example) != names.end();
    choice.plugin = have || names.empty() ? example : names.front();
  }
  field("plugin", choice.plugin, fmt::format("name of the {}", name_of(role)));
  Declaration& name = *section_->declarations.back();
  name.required = name.given;
  section_->noun = "a key next to `plugin`";
  if (beside) beside(*this);
  section_->open = true;
  if (reads() && (!name.given || !name.sound)) {
    const bool without_space = section_->node && std::ranges::any_of(section_->node->members, [](const Member& member) {
                                 return member.key.starts_with("plugin:");
                               });
    if (!name.given && !ill_formed(*section_))
      fault("plugin", fmt::format("is required: the name of {} {}; {}", article(role), name_of(role),
                                  without_space ? "put a space after `plugin:`" : known_names(registry, role)));
    return;
  }
  try {
    section_->open = false;
    describe_options(choice, registry->find(role, choice.plugin));
  } catch (const Error& error) {
    section_->open = true;
    if (!reads()) throw;
    fault("plugin", error.what(), error.code());
  }
}

void ConfigSchema::describe_alternatives(Declaration& declaration, Role role, const Keys& beside) {
  for (const std::string& name : section_->reading->registry->names(role)) {
    PluginChoice choice;
    ConfigSchema& inner = add_inner(declaration, section_->path_of(declaration.key), nullptr);
    inner.describe_plugin(choice, role, name.c_str(), beside);
    inner.finish();
  }
}

void ConfigSchema::plugin(std::string_view key, PluginChoice& choice, Role role, std::string_view meaning,
                          const char* example, const Keys& beside, bool required) {
  Declaration& declaration = declare_node(key, meaning, Declaration::Kind::plugin);
  declaration.required = required;
  if (section_->reading->alternatives) {
    describe_alternatives(declaration, role, beside);
    return;
  }
  if (reads() && !declaration.node) {
    if (required) require_plugin(key, role);
    return;
  }
  ConfigSchema& inner = add_inner(declaration, section_->path_of(key), declaration.node);
  inner.describe_plugin(choice, role, example, beside);
  inner.finish();
}

void ConfigSchema::require_plugin(std::string_view key, Role role) {
  fault(key, fmt::format("is required: {{plugin: name}} of {} {}; {}", article(role), name_of(role),
                         known_names(section_->reading->registry, role)));
}

void ConfigSchema::group(OptimizerGroup& group, const char* example) {
  const Member* named = section_->node ? section_->node->find("plugin") : nullptr;
  const Node* name = named ? &named->value : section_->bare.get();
  group.frozen = name ? name->text == "frozen" : !reads() && std::string_view(example) == "frozen";
  if (!group.frozen) {
    describe_plugin(group, Role::optimizer, example, [&](ConfigSchema& s) { group.describe(s); });
    return;
  }
  shorthand("plugin");
  group.plugin = "frozen";
  section_->noun = "a key next to `plugin: frozen`";
  section_->plugin = "frozen";
  section_->meaning = "keeps the blocks at their initial values";
  field("plugin", group.plugin, "keeps the blocks at their initial values");
  group.describe(*this);
}

void ConfigSchema::groups(std::string_view key, std::vector<OptimizerGroup>& groups, std::string_view meaning) {
  Declaration& declaration = declare_node(key, meaning, Declaration::Kind::groups);
  declaration.required = true;
  const std::string path = section_->path_of(key);
  const auto add = [&](std::string inner_path, const Node* node, const char* example) {
    ConfigSchema& inner = add_inner(declaration, std::move(inner_path), node);
    inner.group(groups.emplace_back(), example);
    inner.finish();
  };
  if (section_->reading->alternatives) {
    for (const std::string& name : section_->reading->registry->names(Role::optimizer))
      add(path, nullptr, name.c_str());
    add(path, nullptr, "frozen");
  } else if (declaration.node && declaration.node->kind == Node::Kind::sequence) {
    if (declaration.node->items.empty()) fault(key, "is an empty list; name at least one optimizer");
    for (std::size_t i = 0; i < declaration.node->items.size(); ++i)
      add(fmt::format("{}.{}", path, i), &declaration.node->items[i], "adam");
  } else if (reads() && !declaration.node) {
    fault(key, "is required: {plugin: name} of an optimizer, or a list of them; " +
                   known_names(section_->reading->registry, Role::optimizer));
  } else {
    add(path, declaration.node, "adam");
  }
}

void ConfigSchema::maps(std::string_view key, std::vector<RecurrentMap>& maps, std::string_view meaning) {
  Declaration& declaration = declare_node(key, meaning, Declaration::Kind::named);
  const std::string path = section_->path_of(key);
  if (section_->reading->alternatives) {
    RecurrentMap map;
    describe_alternatives(declaration, Role::parametrisation, [&map](ConfigSchema& s) { map.describe(s); });
    return;
  }
  if (!declaration.node) return;
  if (declaration.node->kind != Node::Kind::map || declaration.node->abbreviated) {
    fault(key, "must be a mapping from names of the cell's maps to {plugin: name}, got " + shown(*declaration.node));
    return;
  }
  for (const Member& member : declaration.node->members) {
    RecurrentMap& map = maps.emplace_back();
    map.name = member.key;
    declaration.names.push_back(member.key);
    ConfigSchema& inner = add_inner(declaration, path + "." + member.key, &member.value);
    inner.describe_plugin(map, Role::parametrisation, "householder", [&map](ConfigSchema& s) { map.describe(s); });
    inner.finish();
  }
}

}  // namespace stiefel
