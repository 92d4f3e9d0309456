// The experiments that come with stiefel.
#pragma once

#include <filesystem>
#include <string>

#include <stiefel/export.hpp>

namespace stiefel {

/// The folder that holds lib and share of this installation, or the build tree; empty if it lacks share/stiefel.
STIEFEL_API std::filesystem::path installation_prefix();
/// Its folder share/stiefel/experiments, which in a build tree is a link to the sources; empty if there is none.
STIEFEL_API std::filesystem::path shipped_experiments();

/// The file `name`, as seen from `folder`, or, if there is no such file and the name does not end in .yaml or .yml, the experiment of that
/// name that comes with stiefel: "quickstart", "ornn/copy_1000". A folder of that name does not matter.
std::filesystem::path file_of_experiment(const std::filesystem::path& name, const std::filesystem::path& folder = {});
/// "; did you mean …" with the experiments that come with stiefel and have a similar name; empty if it ends in .yaml or .yml, or if `file`,
/// which file_of_experiment gave for it, exists.
std::string experiment_hint(const std::filesystem::path& name, const std::filesystem::path& file);

}  // namespace stiefel
