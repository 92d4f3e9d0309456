// `key.path=value` from the command line.
#pragma once

#include <span>
#include <string>

#include "config/tree.hpp"

namespace stiefel {

/// Sets each value in the tree; a key that holds dots is written in quotes: record.blocks."activation.slope"=100.
STIEFEL_API void apply_overrides(Node& root, std::span<const std::string> overrides, Problems& problems);

}  // namespace stiefel
