// The stiefel-abi tag in the bytes of a plugin, compared with this library's own before the plugin is loaded.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stiefel {

/// Returns the command that fixes a mismatch. `options` are options for CMake, each followed by a space.
using Rebuild = std::function<std::string(const std::string& options)>;

/// Why a library with these bytes must not be loaded; empty if it may be.
std::string check_tag(std::string_view bytes, const Rebuild& rebuild);

}  // namespace stiefel
