// What differs between the start of a run and the process that goes on with it.
#pragma once

#include <string>
#include <vector>

#include "results/layout.hpp"

namespace stiefel {

struct Change {
  std::string name, was, is;  // the key of a configuration, "plugin:NAME", "data:NAME", or a name of /provenance
};

/// Only what can change a bit of the results: keys of the configuration but for threads, places and periods of saving; contents of plugins
/// and data; the build, instruction set and BLAS kernels of the program.
STIEFEL_API std::vector<Change> changes(const RunHeader& before, const RunHeader& now);

/// Error that lists all changes that `allowed` does not name ("all" names every one), and how to allow them.
STIEFEL_API void refuse_changes(const RunHeader& before, const RunHeader& now, const std::vector<std::string>& allowed);

}  // namespace stiefel
