/// The two kinds of failure: Error is a user's mistake and carries a message for the user; STIEFEL_ASSERT guards
/// against bugs in stiefel.
#pragma once

#include <stdexcept>
#include <string>

#include <stiefel/export.hpp>

namespace stiefel {

/// Process exit codes of the `stiefel` program.
enum class Exit : int {
  done = 0,
  internal = 1,
  usage = 2,  ///< command line or configuration
  plugin = 3,
  data = 4,
  diverged = 5,   ///< NaN or Inf
  damaged = 6,    ///< checkpoint or results
  in_use = 7,     ///< run directory
  exhausted = 8,  ///< disk or memory
  preempted = 75,
};

/// A mistake that the user can fix: the message says what is wrong, where, and what to do.
/// Exported with an out-of-line destructor, so that it is caught by type across library boundaries.
class STIEFEL_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& sentence, Exit code = Exit::usage);
  /// The same error with another sentence, for example with its place.
  Error(const std::string& sentence, const Error& cause);
  ~Error() override;
  /// Exit::data, for data that are missing rather than wrong.
  static Error missing(const std::string& sentence);

  Exit code() const noexcept { return code_; }
  bool is_missing() const noexcept { return missing_; }

 private:
  Exit code_;
  bool missing_ = false;
};

/// Throws a std::logic_error naming expression, file and line.
[[noreturn]] STIEFEL_API void assertion_failed(const char* expression, const char* file, int line);

}  // namespace stiefel

#define STIEFEL_ASSERT(condition) ((condition) ? void(0) : ::stiefel::assertion_failed(#condition, __FILE__, __LINE__))
