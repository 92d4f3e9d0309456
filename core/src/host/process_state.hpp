// State that a plugin shares with the whole process, so that its code can affect whatever is computed later.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <locale>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

/// A snapshot of the state. Arithmetic modes and blocked signals are those of the calling thread.
class STIEFEL_API ProcessState {
 public:
  ProcessState();
  /// What differs now: "the rounding mode", "the current folder", … Ends the process if it is a copy, made by fork()
  /// since the snapshot.
  std::vector<std::string> changes() const;
  /// Restores everything except the environment and closed descriptors.
  void restore() const;

 private:
  pid_t process_;
  int rounding_, traps_;
  std::uint64_t flushing_;  // bits that flush small numbers to zero
  std::array<struct sigaction, 65> actions_;
  sigset_t blocked_;
  std::filesystem::path folder_;
  mode_t mask_;
  std::string c_locale_;
  std::locale locale_;
  std::size_t environment_;
  std::set<int> descriptors_;
};

STIEFEL_API std::set<int> open_descriptors();

/// While this object exists, output to standard output goes to standard error.
class STIEFEL_API OutputAside {
 public:
  OutputAside();
  ~OutputAside();
  OutputAside(const OutputAside&) = delete;
  OutputAside& operator=(const OutputAside&) = delete;

 private:
  int output_;
};

/// Surrounds the loading of a plugin or its constructors: their output goes to standard error, and changes of the
/// process state are undone with a warning.
class STIEFEL_API Confined {
 public:
  /// `doing` is a text such as "while it was loaded". The arguments must outlive this object.
  Confined(std::string_view plugin, std::string_view doing, const std::filesystem::path& file)
      : plugin_(plugin), doing_(doing), file_(file) {}
  ~Confined();

 private:
  std::string_view plugin_, doing_;
  const std::filesystem::path& file_;
  OutputAside aside_;
  ProcessState before_;
};

}  // namespace stiefel
