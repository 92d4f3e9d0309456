/// Where a result came from: source, compiler, libraries, machine, process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

/// The facts that only the caller knows.
struct ProvenanceRequest {
  std::string simd_target;  ///< kernel chosen at run time, e.g. "AVX2"
  int threads = 1;
  std::vector<std::string> command_line;
  int mpi_ranks = 1;
};

/// Returns names and texts in the order of the file. A text is "unknown" if the system does not provide the fact.
STIEFEL_API std::vector<std::pair<std::string, std::string>> gather_provenance(const ProvenanceRequest& request);

STIEFEL_API std::string host_name();
/// Bytes of memory that this process has resident now, and has had at most; 0 if the system does not provide them.
STIEFEL_API std::int64_t current_rss_bytes();
STIEFEL_API std::int64_t peak_rss_bytes();
/// Processor time of all threads of this process so far, in seconds.
STIEFEL_API double processor_seconds();

}  // namespace stiefel
