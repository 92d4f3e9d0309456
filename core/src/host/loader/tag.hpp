// The stiefel-abi tag in the bytes of a plugin, compared with this library's own before the plugin is loaded.
#pragma once

#include <string>
#include <string_view>

namespace stiefel {

/// Why a library with these bytes must not be loaded, or an empty text. `rebuild` is the command that mends a mismatch.
std::string check_tag(std::string_view bytes, const std::string& rebuild);

/// The instruction sets of a tag's field `isa` that this CPU does not have, as "avx2, fma"; empty when it has all.
std::string missing_instruction_sets(std::string_view isa);

}  // namespace stiefel
