/// Where a result came from: source, compiler, libraries, machine, process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

/// What only the caller knows.
struct ProvenanceRequest {
  std::string simd_target;  ///< kernel chosen at run time, e.g. "AVX2"
  int threads = 1;
  std::vector<std::string> command_line;
  int mpi_ranks = 1;
};

/// Names and texts in the order of the file; "unknown" where the system does not tell.
STIEFEL_API std::vector<std::pair<std::string, std::string>> gather_provenance(const ProvenanceRequest& request);

STIEFEL_API std::string host_name();
/// Memory of this process that is resident now, and the most there was; 0 when the system does not tell.
STIEFEL_API std::int64_t current_rss_bytes();
STIEFEL_API std::int64_t peak_rss_bytes();
/// Processor time of all threads of this process so far, in seconds.
STIEFEL_API double processor_seconds();

}  // namespace stiefel
