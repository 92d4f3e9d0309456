// `stiefel describe`: YAML to start from, every key with its default, type, range and meaning.
#pragma once

#include <string>
#include <vector>

#include "host/registry.hpp"

namespace stiefel {

/// A complete experiment that validates, with one plugin of each role.
STIEFEL_API std::string explain_experiment(const Registry& registry);
/// The part of it at a path such as model.cell, under the keys where it appears; empty if there is none.
STIEFEL_API std::string explain_key(const Registry& registry, const std::string& path);
/// One method, under the keys where it appears in an experiment, with these options, KEY=VALUE, which decide what others
/// it has. Throws Error if a file that they name has no such method.
STIEFEL_API std::string explain_plugin(const Registry& registry, const Entry& entry,
                                       const std::vector<std::string>& options = {});
/// All keys of an experiment as paths for the command line.
STIEFEL_API std::vector<std::string> experiment_keys(const Registry& registry);
/// The values from which the key at a path takes one, such as the names of plugins; none if it takes any.
STIEFEL_API std::vector<std::string> experiment_values(const Registry& registry, const std::string& path);

}  // namespace stiefel
