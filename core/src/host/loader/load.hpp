// One plugin file: every check of the handshake that needs no other file, and the loading itself.
#pragma once

#include <filesystem>

#include "host/registry.hpp"

namespace stiefel {

/// Checks in this order: valid ELF, one tag that equals ours, instruction sets of this CPU, dlopen, table. The first
/// failure is the result's `unusable`. A library once loaded stays loaded: objects, exceptions and vtables of it may
/// live anywhere.
PluginFile load_plugin(const std::filesystem::path& path);

/// The folder that libstiefel.so lies in: `stiefel/plugins` and `cmake/stiefel` are next to it, installed or not.
STIEFEL_API std::filesystem::path library_folder();

}  // namespace stiefel
