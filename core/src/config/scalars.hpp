// Converts nodes of the tree to values of one type, strictly by the grammar of numbers, and values back to YAML text.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <stiefel/index.hpp>

#include "config/tree.hpp"

namespace stiefel {

using Value =
    std::variant<bool, Index, double, std::string, std::vector<Index>, std::vector<double>, std::vector<std::string>>;

/// "true or false", "an integer", …
STIEFEL_API std::string type_name(const Value& value);

struct Fault {
  Location where;
  std::string sentence;  ///< what follows the key: `must be an integer, got "x"`
};

/// Reads `node` as the type that `value` already holds; false and faults if it is something else; `value` is then
/// unchanged.
STIEFEL_API bool read_value(const Node& node, Value& value, std::vector<Fault>& faults);

/// `'abc'`, `a list`, `a mapping`, `nothing`.
STIEFEL_API std::string shown(const Node& node);
/// The beginning of a text in one line, for use in a message.
STIEFEL_API std::string shortened(std::string_view text);

/// The shortest decimal that reads back to the same bits.
STIEFEL_API std::string number_text(double value);
/// Text as a YAML scalar, in quotes only if needed.
STIEFEL_API std::string quoted_text(std::string_view text);
/// A value as YAML in one line.
STIEFEL_API std::string yaml_text(const Value& value);

}  // namespace stiefel
