// Fields: what describe() declares is recorded, read from the tree when there is one, and checked.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/suggestion.hpp"
#include "config/config_schema.hpp"
#include "config/field_check.hpp"

namespace stiefel {

Schema::Schema(std::unique_ptr<detail::Section> section) : section_(std::move(section)) {}
Schema::~Schema() = default;

template <class T> Field<T> Schema::declare(std::string_view key, T& value, std::string_view meaning) {
  check_declared(*section_, key);
  auto declaration = std::make_unique<Declaration>();
  declaration->key = key;
  declaration->meaning = meaning;
  declaration->fallback = declaration->value = value;
  declaration->only_where = section_->only_where;
  if (const Node* node = find_value(*section_, key, declaration->where)) {
    declaration->given = true;
    declaration->node = node;
    read_field(*section_, *declaration);
    if (declaration->sound) value = std::get<T>(declaration->value);
  }
  section_->declarations.push_back(std::move(declaration));
  return {*this, section_->declarations.size() - 1};
}

Field<bool> Schema::field(std::string_view key, bool& value, std::string_view meaning) {
  return declare(key, value, meaning);
}
Field<Index> Schema::field(std::string_view key, Index& value, std::string_view meaning) {
  return declare(key, value, meaning);
}
Field<double> Schema::field(std::string_view key, double& value, std::string_view meaning) {
  return declare(key, value, meaning);
}
Field<std::string> Schema::field(std::string_view key, std::string& value, std::string_view meaning) {
  return declare(key, value, meaning);
}
Field<std::vector<Index>> Schema::field(std::string_view key, std::vector<Index>& value, std::string_view meaning) {
  return declare(key, value, meaning);
}
Field<std::vector<double>> Schema::field(std::string_view key, std::vector<double>& value, std::string_view meaning) {
  return declare(key, value, meaning);
}
Field<std::vector<std::string>> Schema::field(std::string_view key, std::vector<std::string>& value,
                                              std::string_view meaning) {
  return declare(key, value, meaning);
}

void Schema::part(std::string_view key, std::string& path, std::string_view meaning) {
  field(key, path, meaning).required();
  Declaration& declaration = *section_->declarations.back();
  declaration.part = true;
  path.clear();
  section_->open = true;
  if (!declaration.given || !declaration.sound) return;
  std::string& given = std::get<std::string>(declaration.value);
  const std::filesystem::path folder = std::filesystem::path(declaration.where.file).parent_path(),
                              place = std::filesystem::absolute(folder / given).lexically_normal();
  std::error_code failure;
  if (!std::filesystem::is_regular_file(place, failure)) {
    static_cast<ConfigSchema&>(*this).fault(key,
                                            fmt::format("there is no file {}{}", place.string(), home_hint(given)));
    return;
  }
  section_->open = false;
  path = given = place.string();
}

void Schema::works_with(std::string_view versions) {
  for (const auto& declaration : section_->declarations)
    if (declaration->part) declaration->works_with = versions;
}

void Schema::shorthand(std::string_view first) { section_->shorthand = first; }

void Schema::check(bool holds, std::string_view key, std::string_view sentence) {
  check_fields(*section_);
  // What could not be read keeps its default: a condition on it would blame the wrong value.
  if (holds || !section_->reading->problems || !section_->sound() || ill_formed(*section_)) return;
  static_cast<ConfigSchema&>(*this).fault(key, std::string(sentence));
  const auto at = std::ranges::find(section_->declarations, key, &Declaration::key);
  if (at != section_->declarations.end() && (*at)->part) section_->open = true;
}

Schema& Schema::enter(std::string_view key, std::string_view meaning) {
  return static_cast<ConfigSchema&>(*this).enter_section(key, meaning);
}
void Schema::leave(Schema& inner) { static_cast<ConfigSchema&>(inner).finish(); }

template <class T> Field<T>& Field<T>::at_least(double low) {
  Declaration& declaration = *schema_.section_->declarations[entry_];
  declaration.low = low;
  declaration.low_excluded = false;
  return *this;
}
template <class T> Field<T>& Field<T>::more_than(double low) {
  at_least(low);
  schema_.section_->declarations[entry_]->low_excluded = true;
  return *this;
}
template <class T> Field<T>& Field<T>::at_most(double high) {
  Declaration& declaration = *schema_.section_->declarations[entry_];
  declaration.high = high;
  declaration.high_excluded = false;
  return *this;
}
template <class T> Field<T>& Field<T>::less_than(double high) {
  at_most(high);
  schema_.section_->declarations[entry_]->high_excluded = true;
  return *this;
}
template <class T> Field<T>& Field<T>::one_of(std::initializer_list<std::string_view> values) {
  schema_.section_->declarations[entry_]->one_of.assign(values.begin(), values.end());
  return *this;
}
template <class T> Field<T>& Field<T>::one_of(std::vector<std::string> values) {
  schema_.section_->declarations[entry_]->one_of = std::move(values);
  return *this;
}
template <class T> Field<T>& Field<T>::required() {
  schema_.section_->declarations[entry_]->required = true;
  return *this;
}
template <class T> Field<T>& Field<T>::units(std::string_view units) {
  schema_.section_->declarations[entry_]->units = units;
  return *this;
}

template <class T> Field<T>& Field<T>::only_if(bool holds, std::string_view where) {
  if (!holds) schema_.section_->declarations[entry_]->only_where = where;
  return *this;
}

template <class T> Field<T>& Field<T>::not_in_id_at_default() {
  schema_.section_->declarations[entry_]->in_id_at_default = false;
  return *this;
}
template <class T> Field<T>& Field<T>::fixed_once_begun(std::string_view why) {
  schema_.section_->declarations[entry_]->fixed_because = why;
  return *this;
}

template class Field<bool>;
template class Field<Index>;
template class Field<double>;
template class Field<std::string>;
template class Field<std::vector<Index>>;
template class Field<std::vector<double>>;
template class Field<std::vector<std::string>>;

}  // namespace stiefel
