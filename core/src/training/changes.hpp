// What differs between the start of a run and the process that resumes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "record/layout.hpp"

namespace stiefel {

struct Change {
  // The key of a configuration, "plugin:NAME", "plugin:ROLE NAME" where two roles share it, "data:NAME", or a name of
  // /provenance.
  std::string name;
  std::optional<std::string> was, is;  // nothing: there is none
};

/// A line "name=value" for everything in which two processes must agree to compute the same numbers.
STIEFEL_API std::string lines_of_values(const RunHeader& header);

/// Only what can change a bit of the results: keys of the configuration but for threads, places and periods of saving;
/// contents of plugins and data; the build, instruction set and BLAS kernels of the program. Changes that were allowed
/// in an earlier segment do not count.
STIEFEL_API std::vector<Change> changes(const RunHeader& before, const RunHeader& now);

/// Whether a setting that can change a bit of the results is not that of the run. A key that did not exist then counts
/// only if it is set.
bool has_other_settings(const RunHeader& run, const LoadedExperiment& loaded);

/// Whether a run with this change would have made the same steps, and perhaps more; a change of the program or of a
/// plugin counts as none. `origins`: of the changed configuration.
bool only_lengthens(const Change& change, const std::vector<std::string>& origins);

/// What was changed when the run was resumed, apart from the type of the host: since then it is not the run that its
/// configuration, plugins and build describe.
STIEFEL_API std::vector<std::string> changed_by_resuming(const RunHeader& header);

/// The changes in the contents of data files.
STIEFEL_API std::vector<Change> changes_of_data(const RunHeader& before, const RunHeader& now);

/// Checksum of the data file that a value of the configuration names; empty if it names none.
STIEFEL_API std::string checksum(const RunHeader& header, const std::string& file);

/// The changes, as Segment::changes; throws Error that lists those not in `allowed` ("all" allows every one) and how
/// to allow them, or that names a change of a key that is `fixed`.
STIEFEL_API std::string allowed_changes(const RunHeader& before, const RunHeader& now,
                                        const std::vector<std::string>& allowed, const FixedKeys& fixed);

}  // namespace stiefel
