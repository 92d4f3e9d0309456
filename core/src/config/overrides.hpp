// `key.path=value` from the command line, and values that a sweep merges over an experiment.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/tree.hpp"

namespace stiefel {

struct Override {
  std::string text, path;  ///< as written; only the path
  std::vector<std::string> keys;
  Node value;
  Location where;  ///< of the path
};

/// Keys of `model.cell.hidden`; a key that contains dots is written in quotes: record.blocks."activation.slope". Empty
/// if it is not a path.
STIEFEL_API std::vector<std::string> keys_of_path(std::string_view path);

/// Whether the key of `inner` is that of `outer` or lies inside it.
STIEFEL_API bool is_within(const Override& inner, const Override& outer);

/// From `key.path=value`; nothing and a problem if it does not have this form.
STIEFEL_API std::optional<Override> parse_override(const std::string& text, Problems& problems);

/// Sets each value in the tree.
STIEFEL_API void apply_overrides(Node& root, std::vector<Override> overrides, Problems& problems);
/// The same from the command line.
STIEFEL_API void apply_overrides(Node& root, std::span<const std::string> overrides, Problems& problems);

}  // namespace stiefel
