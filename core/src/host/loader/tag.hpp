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

}  // namespace stiefel
