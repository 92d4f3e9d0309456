// The stiefel-abi tag in the bytes of a plugin, compared with this library's own before the plugin is loaded.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stiefel {

/// The command that mends a mismatch, with these options for CMake, each followed by a blank.
using Rebuild = std::function<std::string(const std::string& options)>;

/// Why a library with these bytes must not be loaded, or an empty text.
std::string check_tag(std::string_view bytes, const Rebuild& rebuild);

/// The instruction sets of a tag's field `isa` that this CPU does not have, as "avx2, fma"; empty when it has all.
std::string missing_instruction_sets(std::string_view isa);

}  // namespace stiefel
