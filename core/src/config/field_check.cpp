// What is wrong with the value of a field, as the sentence that follows its key.
#include "config/field_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/suggestion.hpp"

namespace stiefel {
namespace {

std::string range_text(const Declaration& field) {
  const std::string low = field.low ? number_text(*field.low) : "", high = field.high ? number_text(*field.high) : "";
  if (field.low && field.high && !field.low_excluded && !field.high_excluded)
    return fmt::format("from {} to {}", low, high);
  std::string text;
  if (field.low) text = (field.low_excluded ? "above " : "at least ") + low;
  if (field.high)
    text += (text.empty() ? "" : " and ") + std::string(field.high_excluded ? "below " : "at most ") + high;
  return text;
}

/// Punctuation in quotes: `","`, `"\\t"`.
std::string choices(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool plain = std::ranges::any_of(word, [](unsigned char c) { return std::isalnum(c) || c >= 0x80; });
    text += (text.empty() ? "" : ", ") + (plain ? word : fmt::format("{:?}", word));
  }
  return text;
}

bool in_range(const Declaration& field, double value) {
  if (field.low && (field.low_excluded ? value <= *field.low : value < *field.low)) return false;
  return !(field.high && (field.high_excluded ? value >= *field.high : value > *field.high));
}

/// What is wrong with one value, or nothing.
struct Check {
  const Declaration& field;
  std::size_t& entry;  // of a list, where it is wrong

  std::string operator()(bool) const { return {}; }
  std::string operator()(Index value) const {
    return in_range(field, double(value)) ? std::string() : fmt::format("must be {}, got {}", range_text(field), value);
  }
  std::string operator()(double value) const {
    if (!std::isfinite(value)) return fmt::format("must be finite, got {}", value);
    return in_range(field, value) ? std::string()
                                  : fmt::format("must be {}, got {}", range_text(field), number_text(value));
  }
  std::string operator()(const std::string& value) const {
    if (field.one_of.empty() || std::ranges::find(field.one_of, value) != field.one_of.end()) return {};
    return fmt::format("must be one of {}; got '{}'{}", choices(field.one_of), shortened(value),
                       suggestion(value, field.one_of));
  }
  template <class T> std::string operator()(const std::vector<T>& list) const {
    for (entry = 0; entry < list.size(); ++entry)
      if (const std::string fault = (*this)(list[entry]); !fault.empty())
        return fmt::format("entry {} {}", entry, fault);
    return {};
  }
};

}  // namespace

std::string Declaration::constraint() const {
  std::string text = type_name(value);
  if (!one_of.empty()) text = (std::holds_alternative<std::string>(value) ? "one of " : "a list of ") + choices(one_of);
  if (low || high) text += (one_of.empty() && text.starts_with("a list") ? ", each " : ", ") + range_text(*this);
  if (!units.empty() && units != "1") text += ", in " + units;
  return text;
}

bool detail::Section::sound() const {
  return std::ranges::all_of(declarations, [](const auto& declaration) { return declaration->sound; });
}

void check_declared(const detail::Section& section, std::string_view key) {
  for (const auto& declaration : section.declarations)
    if (declaration->key == key)
      throw Error(
          fmt::format("the option '{}' is declared twice{}; give it another name in describe()", section.path_of(key),
                      section.plugin.empty()
                          ? ""
                          : fmt::format(", once by '{}' and once by stiefel or by the same plugin", section.plugin)),
          Exit::plugin);
}

bool ill_formed(const detail::Section& section) {
  if (!section.node) return false;
  if (section.node->kind == Node::Kind::sequence) return true;
  return (section.node->kind == Node::Kind::scalar || section.node->abbreviated) && section.shorthand.empty();
}

const Node* find_value(const detail::Section& section, std::string_view key, Location& where) {
  const Node* node = section.node;
  if (!node || !section.reading->problems) return nullptr;
  if (const Member* member = node->find(key)) {
    where = member->value.where;
    return &member->value;
  }
  if ((node->kind == Node::Kind::scalar || node->abbreviated) && key == section.shorthand) {
    where = section.bare->where;
    return section.bare.get();
  }
  return nullptr;
}

void read_field(const detail::Section& section, Declaration& declaration) {
  std::vector<Fault> faults;
  declaration.sound = read_value(*declaration.node, declaration.value, faults);
  for (const Fault& fault : faults)
    section.reading->problems->add(fault.where, section.path_of(declaration.key) + " " + fault.sentence);
}

bool acceptable(const Declaration& field, const Value& value) {
  std::size_t entry = 0;
  return std::visit(Check{field, entry}, value).empty();
}

void check_fields(detail::Section& section) {
  Problems* problems = section.reading->problems;
  for (; section.checked < section.declarations.size(); ++section.checked) {
    Declaration& field = *section.declarations[section.checked];
    if (!problems || field.kind != Declaration::Kind::field || !field.sound) continue;
    std::string fault;
    std::size_t entry = 0;
    if (field.given || (!field.required && !section.plugin.empty()))
      fault = std::visit(Check{field, entry}, field.value);
    if (!field.given && field.required && !ill_formed(section))
      fault = fmt::format("is required: {} ({})", field.meaning, field.constraint());
    if (fault.empty()) {
      if (field.given && !field.only_where.empty() && field.value != field.fallback && section.reading->remarks)
        section.reading->remarks->push_back(fmt::format("{}: {} has no effect here; it is for {}", field.where.text(),
                                                        section.path_of(field.key), field.only_where));
      continue;
    }
    field.sound = false;
    if (!field.given && !field.required) {
      problems->add(section.where,
                    fmt::format("{}: the default {}; correct describe() of {}", section.path_of(field.key), fault,
                                section.plugin),
                    Exit::plugin);
      continue;
    }
    const bool in_list = field.given && field.node->kind == Node::Kind::sequence;
    problems->add(!field.given ? section.where
                  : in_list    ? field.node->items[entry].where
                               : field.where,
                  section.path_of(field.key) + " " + fault);
  }
}

}  // namespace stiefel
