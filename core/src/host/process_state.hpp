// What a plugin shares with the whole process, which its code can change for everything that is computed later.
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

/// Of the calling thread, where it belongs to a thread: the arithmetic and the blocked signals.
class STIEFEL_API ProcessState {
 public:
  /// As it is now.
  ProcessState();
  /// What is different now: "the rounding mode", "the current folder", … A copy of the process that was made since then ends here.
  std::vector<std::string> changes() const;
  /// Puts back all but the environment and descriptors that were closed.
  void restore() const;

 private:
  pid_t process_;
  int rounding_, traps_;
  std::uint64_t flushing_;  // of small numbers to zero
  std::array<struct sigaction, 65> actions_;
  sigset_t blocked_;
  std::filesystem::path folder_;
  mode_t mask_;
  std::string c_locale_;
  std::locale locale_;
  std::size_t environment_;
  std::set<int> descriptors_;
};

/// Numbers of the open descriptors.
STIEFEL_API std::set<int> open_descriptors();

/// While this exists, what is printed to standard output goes to standard error.
class STIEFEL_API OutputAside {
 public:
  OutputAside();
  ~OutputAside();
  OutputAside(const OutputAside&) = delete;
  OutputAside& operator=(const OutputAside&) = delete;

 private:
  int output_;
};

/// Around the loading of a plugin and its constructors: they print to standard error, and what they change of the process is put back,
/// with a warning.
class STIEFEL_API Confined {
 public:
  /// `doing`: "while it was loaded"; the texts must outlive this.
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
