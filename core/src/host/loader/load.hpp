// One plugin file: every check of the handshake that needs no other file, and the loading itself.
#pragma once

#include <filesystem>

#include "host/registry.hpp"

namespace stiefel {

/// Loads a plugin file after checks in this order: valid ELF, one tag that equals ours, instruction sets of this CPU,
/// dlopen, table. The first failure is the result's `unusable`. A loaded library stays loaded, because its objects,
/// exceptions and vtables may live anywhere. Throws Error (Exit::exhausted) if memory runs out.
PluginFile load_plugin(const std::filesystem::path& path);

/// The folder of libstiefel.so. `stiefel/plugins` and `cmake/stiefel` are next to it, installed or not.
STIEFEL_API std::filesystem::path library_folder();

}  // namespace stiefel
