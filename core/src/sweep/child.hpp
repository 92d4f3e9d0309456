// A run of a sweep as a process of its own: this program again, on cores of its own, ending with the worker that started it.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace stiefel {

/// The cores of this process, shared out among the places of its workers. Beside other processes of `mpirun` on this host, their cores
/// are left to them.
class CoreShares {
 public:
  /// `threads` of each place; 0: an equal share of the cores.
  CoreShares(int places, int threads);
  int threads() const { return threads_; }
  cpu_set_t of(int place) const;

 private:
  std::vector<int> cores_;
  int threads_, first_;
};

/// Starts `stiefel WORDS…` in a process group of its own, its output added to a file. It is told by the environment variable
/// STIEFEL_PARENT that it is to stop, with a checkpoint, when this process ends.
pid_t start_child(const std::vector<std::string>& words, const std::filesystem::path& log, const cpu_set_t& cores);

/// The last line after so many bytes of a log that is not empty, without "stiefel: " at its beginning; "nothing" when there is none.
std::string last_line(const std::filesystem::path& log, std::uintmax_t begin);

}  // namespace stiefel
