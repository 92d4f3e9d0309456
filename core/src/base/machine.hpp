// What this process may use: the machine's memory and cores, as far as its control groups (version 1 or 2), its limits
// and its affinity allow.
#pragma once

#include <filesystem>
#include <string>

#include <stiefel/export.hpp>

namespace stiefel {

struct MemoryLimit {
  double bytes = 0;
  std::string source;       ///< "this machine has", "the control group /a/b allows", "ulimit -v allows"
  bool of_process = false;  ///< of each process, not of all on the host together
};

/// The least that the machine's memory, the limits of the control groups and RLIMIT_AS leave to this number of processes.
/// /proc and /sys are those below `root`.
STIEFEL_API MemoryLimit memory_limit(const std::filesystem::path& root = "/", int processes = 1);

/// Cores of the affinity, or as many as the quotas of the control groups amount to, rounded up; at least one.
STIEFEL_API int usable_cores(const std::filesystem::path& root = "/");

/// "8.6 GB", "37 MB".
STIEFEL_API std::string bytes_text(double bytes);

}  // namespace stiefel
