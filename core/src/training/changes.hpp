// What differs between the start of a run and the process that resumes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "record/layout.hpp"

namespace stiefel {

struct Change {
  // A configuration key, "plugin:NAME" ("plugin:ROLE NAME" if two roles share the name), "data:NAME", or a name in
  // /provenance.
  std::string name;
  std::optional<std::string> was, is;  // nothing: it does not exist
};

/// A line "name=value" for everything in which two processes must agree to compute the same numbers.
STIEFEL_API std::string lines_of_values(const RunHeader& header);

/// Returns the differences that can change a bit of the results: in configuration keys, contents of plugins and data,
/// and build, instruction set and BLAS kernels of the program. Those that an earlier segment was allowed do not count.
STIEFEL_API std::vector<Change> changes(const RunHeader& before, const RunHeader& now);

/// Whether `loaded` differs from the run in a setting that can change a bit of the results. A key that did not exist
/// when the run began counts only if it is set.
bool has_other_settings(const RunHeader& run, const LoadedExperiment& loaded);

/// Whether a run with this change would have made the same steps, and perhaps more. Changes of the program and of
/// plugins always pass. `origins`: of the changed configuration.
bool only_lengthens(const Change& change, const std::vector<std::string>& origins);

/// Returns the names of what changed when the run was resumed, except for the type of the host. If there are any, the
/// run is not the one that its configuration, plugins and build describe.
STIEFEL_API std::vector<std::string> changed_by_resuming(const RunHeader& header);

STIEFEL_API std::vector<Change> changes_of_data(const RunHeader& before, const RunHeader& now);

/// Checksum of the data file that a value of the configuration names; empty if it names none.
STIEFEL_API std::string checksum(const RunHeader& header, const std::string& file);

/// Returns the changes in the form of Segment::changes. Throws Error if a `fixed` key has changed, or if changes are
/// not in `allowed` ("all" allows every one); Exit::in_use if all are due to the type of the host.
STIEFEL_API std::string allowed_changes(const RunHeader& before, const RunHeader& now,
                                        const std::vector<std::string>& allowed, const FixedKeys& fixed);

}  // namespace stiefel
