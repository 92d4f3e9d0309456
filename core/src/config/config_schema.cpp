// Sections, and the refusal of what no key of theirs names.
#include "config/config_schema.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggestion.hpp"
#include "config/field_check.hpp"

namespace stiefel {
namespace {

std::unique_ptr<detail::Section> make_section(Reading& reading, std::string path, const Node* node, Location where) {
  auto section = std::make_unique<detail::Section>();
  section->reading = &reading;
  section->noun = path.empty() ? "a key of an experiment" : "a key of " + path;
  section->path = std::move(path);
  section->where = std::move(where);
  if (node && node->kind != Node::Kind::null && reading.problems) section->node = node;
  return section;
}

}  // namespace

ConfigSchema::ConfigSchema(Reading& reading, std::string path, const Node* node, Location where)
    : Schema(make_section(reading, std::move(path), node, std::move(where))) {
  if (!reading.root) reading.root = this;
  if (!section_->node || (section_->node->kind != Node::Kind::scalar && !section_->node->abbreviated)) return;
  section_->bare = std::make_unique<Node>();
  section_->bare->kind = Node::Kind::scalar;
  section_->bare->where = section_->node->abbreviated ? section_->node->text_where : section_->node->where;
  section_->bare->text = section_->node->text;
  section_->bare->quoted = section_->node->quoted;
}
ConfigSchema::~ConfigSchema() = default;

Declaration& ConfigSchema::declare_node(std::string_view key, std::string_view meaning, Declaration::Kind kind) {
  check_declared(*section_, key);
  auto declaration = std::make_unique<Declaration>();
  declaration->kind = kind;
  declaration->key = key;
  declaration->meaning = meaning;
  declaration->where = section_->where;
  const Node* node = find_value(*section_, key, declaration->where);
  declaration->given = node != nullptr;
  if (node && node->kind != Node::Kind::null) declaration->node = node;
  section_->declarations.push_back(std::move(declaration));
  return *section_->declarations.back();
}

ConfigSchema& ConfigSchema::add_inner(Declaration& declaration, std::string path, const Node* node) {
  const Location where = node ? node->where : declaration.where;
  declaration.inner.push_back(std::make_unique<ConfigSchema>(*section_->reading, std::move(path), node, where));
  return *declaration.inner.back();
}

ConfigSchema& ConfigSchema::enter_section(std::string_view key, std::string_view meaning) {
  Declaration& declaration = declare_node(key, meaning, Declaration::Kind::section);
  return add_inner(declaration, section_->path_of(key), declaration.node);
}

const Node* ConfigSchema::given(std::string_view key) const {
  const Member* member = section_->node ? section_->node->find(key) : nullptr;
  return member ? &member->value : nullptr;
}

void ConfigSchema::list(std::string_view key, std::string_view meaning, const Keys& keys) {
  Declaration& declaration = declare_node(key, meaning, Declaration::Kind::list);
  const std::vector<Node>& items = declaration.node->items;
  if (items.empty()) fault(key, "is an empty list");
  for (std::size_t i = 0; i < items.size(); ++i) {
    ConfigSchema& inner = add_inner(declaration, fmt::format("{}.{}", section_->path_of(key), i), &items[i]);
    keys(inner);
    inner.finish();
  }
}

void ConfigSchema::periods(std::string_view key, std::vector<std::pair<std::string, Index>>& periods,
                           std::string_view meaning) {
  Declaration& declaration = declare_node(key, meaning, Declaration::Kind::periods);
  const std::string path = section_->path_of(key);
  if (!declaration.node) return;
  if (declaration.node->kind != Node::Kind::map || declaration.node->abbreviated) {
    fault(key, "must be a mapping from names to periods, got " + shown(*declaration.node));
    return;
  }
  for (const Member& member : declaration.node->members) {
    Value value = Index(0);
    std::vector<Fault> faults;
    if (read_value(member.value, value, faults) && std::get<Index>(value) < 0)
      faults.push_back({member.value.where, fmt::format("must be at least 0, got {}", std::get<Index>(value))});
    for (const Fault& fault : faults)
      section_->reading->problems->add(fault.where,
                                       fmt::format("{}.{} {}", path, shortened(member.key), fault.sentence));
    periods.emplace_back(member.key, std::get<Index>(value));
    declaration.names.push_back(member.key);
    declaration.values.push_back(std::get<Index>(value));
  }
}

void ConfigSchema::fault(std::string_view key, std::string sentence, Exit code) {
  Location where = section_->where;
  for (const auto& declaration : section_->declarations)
    if (declaration->key == key) {
      declaration->sound = false;
      if (declaration->given) where = declaration->where;
    }
  const std::string path = key.empty() ? section_->path : section_->path_of(key);
  section_->reading->problems->add(
      where, path + (sentence.starts_with("must ") || sentence.starts_with("is ") ? " " : ": ") + sentence, code);
}

void ConfigSchema::remark(std::string_view key, const std::string& sentence) const {
  for (const auto& declaration : section_->declarations)
    if (declaration->key == key && declaration->given && section_->reading->remarks)
      section_->reading->remarks->push_back(
          fmt::format("{}: {} {}", declaration->where.text(), section_->path_of(key), sentence));
}

void ConfigSchema::finish() {
  check_fields(*section_);
  if (section_->node && ill_formed(*section_))
    fault("", "must be a mapping of keys to values, got " +
                  (section_->node->abbreviated ? shown(*section_->bare) : shown(*section_->node)));
  if (section_->reading->root != this || !reads()) return;
  std::vector<std::string> paths;
  collect_paths(paths);
  refuse_unknown_keys(paths);
}

/// Without those in lists, whose entries may have different keys.
void ConfigSchema::collect_paths(std::vector<std::string>& paths) const {
  for (const auto& declaration : section_->declarations) {
    paths.push_back(section_->path_of(declaration->key));
    const bool list = declaration->node && declaration->node->kind == Node::Kind::sequence;
    if (declaration->inner.size() == 1 && !list) declaration->inner[0]->collect_paths(paths);
  }
}

/// Suggests a key of the same section, unless only a key of another one has exactly this name.
void ConfigSchema::refuse_unknown_keys(const std::vector<std::string>& paths) {
  for (const auto& declaration : section_->declarations)
    for (const auto& inner : declaration->inner) inner->refuse_unknown_keys(paths);
  if (!section_->node || section_->open || ill_formed(*section_)) return;
  std::vector<std::string> known;
  for (const auto& declaration : section_->declarations) known.push_back(declaration->key);
  for (const Member& member : section_->node->members) {
    if (std::ranges::find(known, member.key) != known.end()) continue;
    const auto named = std::ranges::find(section_->declarations, section_->shorthand, &Declaration::key);
    const bool is_kind = named != section_->declarations.end() && std::ranges::count((*named)->one_of, member.key) > 0;
    const bool begun = std::ranges::any_of(known, [&](const std::string& key) { return key.starts_with(member.key); });
    const bool elsewhere =
        !begun && std::ranges::any_of(paths, [&](const std::string& path) { return path.ends_with("." + member.key); });
    std::string close = is_kind                   ? fmt::format("; write `{}: {}`", section_->shorthand, member.key)
                        : member.key == "extends" ? "; it belongs at the top level of a file"
                        : elsewhere               ? ""
                                                  : suggestion(member.key, known);
    if (close.empty()) close = suggestion(member.key, paths);
    section_->reading->problems->add(
        member.where, fmt::format("{} is not {}{}", section_->path_of(shortened(member.key)), section_->noun,
                                  close.empty() ? fmt::format("; choose from {}", fmt::join(known, ", ")) : close));
  }
}

}  // namespace stiefel
