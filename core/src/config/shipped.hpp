// The experiments that come with stiefel.
#pragma once

#include <filesystem>

#include <stiefel/export.hpp>

namespace stiefel {

/// The folder share/stiefel/experiments of the installation, or that of the source tree in a build tree; empty if there is neither.
STIEFEL_API std::filesystem::path shipped_experiments();

/// `file`, or, if there is no such file and its name has no ending, the experiment of that name that comes with stiefel: "quickstart",
/// "ornn/copy_1000".
std::filesystem::path file_of_experiment(const std::filesystem::path& file);

}  // namespace stiefel
