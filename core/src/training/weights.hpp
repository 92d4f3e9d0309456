// A trained network for other programs: its matrices as the equations have them, in one safetensors file.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "config/load.hpp"
#include "training/run.hpp"

namespace stiefel {

/// Returns the bytes of the file that docs/DEPLOY.md describes, for the network in a file of write_network(). Adds
/// `about` to the file's description.
STIEFEL_API std::string exported_weights(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                                         const std::filesystem::path& network,
                                         const std::map<std::string, std::string>& about);

}  // namespace stiefel
