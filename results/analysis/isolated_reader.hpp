/// Reads untrusted result files in a child process with limits. A file that crashes or hangs it, or makes it take too
/// much memory, costs one row and not the command.
///
/// The child is this program again, started as `stiefel read-results`. It reads run after run, and is restarted after a
/// run that ended it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <stiefel/export.hpp>

#include "results/analysis/run_data.hpp"

namespace stiefel {

/// The argument that starts the program as the child.
constexpr const char* reading_command = "read-results";

/// Calls `use` with each run, in order. If a run cannot be read, its `unreadable` has the reason. This process opens
/// none of the files.
STIEFEL_API void read_runs(const std::vector<std::filesystem::path>& paths, const RunRequest& request,
                           const std::function<void(RunData&&)>& use);
STIEFEL_API std::vector<RunData> read_runs(const std::vector<std::filesystem::path>& paths, const RunRequest& request);

/// Reads all numbers of a network in the child. Throws Error (Exit::damaged) if they cannot be read.
STIEFEL_API void demand_readable(const std::filesystem::path& network);

/// The child's main loop: answers requests until there are no more. Returns the exit code.
STIEFEL_API int serve_reads();

}  // namespace stiefel
