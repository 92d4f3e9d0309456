// Reading and checking of declared fields, behind Schema::field.
#pragma once

#include <string>
#include <string_view>

#include "config/declaration.hpp"

namespace stiefel {

/// Throws Error if the section already declares the key: a plugin's option that clashes with a key of stiefel's.
void check_declared(const detail::Section& section, std::string_view key);

/// The value at `key` of the section, and its place; null if it is absent.
const Node* find_value(const detail::Section& section, std::string_view key, Location& where);

/// Reads the declaration's node into its value.
void read_field(const detail::Section& section, Declaration& declaration);

/// Checks the fields declared since the last call against their constraints.
void check_fields(detail::Section& section);

/// Whether the field's constraints allow the value.
bool acceptable(const Declaration& field, const Value& value);

/// True if the section's node is neither a mapping nor a scalar that abbreviates one.
bool ill_formed(const detail::Section& section);

}  // namespace stiefel
