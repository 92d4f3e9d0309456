// The conformance kit behind `stiefel check`: tests the contract in the SDK's headers on one method of a plugin.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/report.hpp"
#include "host/registry.hpp"

namespace stiefel::conformance {

struct CheckSettings {
  std::vector<std::string> options;  // key=value, the method's own
  std::vector<std::string> scalars = {"float32", "float64"};
  std::vector<std::uint64_t> seeds;  // only these; empty: one or two
  std::string data_directory;
  Index rows = 0, cols = 0;         // of a parametrisation, complex ones counted once; 0: several
  long (*allocations)() = nullptr;  // of the calling thread so far; null: they are not counted
};

/// Where a check is, so that another process can report a call that never returns. Texts end with 0.
struct Progress {
  int entry = 0;  ///< of the file, counted from 0
  char method[64] = "";
  char check[64] = "";
  char verb[64] = "";
  std::atomic<std::uint64_t> calls = 0;  ///< started so far
  bool done = false;
};

/// Whether a method can be made with these options, key=value.
STIEFEL_API bool takes_options(const Registry& registry, const Entry& entry, const std::vector<std::string>& options);
/// Whether the file that the options name, such as a script, has a method of this role; other options may be missing.
STIEFEL_API bool has_method(const Registry& registry, const Entry& entry, const std::vector<std::string>& options);

/// Runs every check of the method's role, up to a failure that makes the others meaningless. Failures are in the report;
/// throws Error only if `options` cannot be read.
STIEFEL_API CheckReport check_method(const Registry& registry, const Entry& entry, const CheckSettings& settings,
                                     Progress& progress);

}  // namespace stiefel::conformance
