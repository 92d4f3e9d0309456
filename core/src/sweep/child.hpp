// A run of a sweep as a separate process: this program again, on its own cores, ending with the worker that started it.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace stiefel {

/// Divides the cores of this process among the places of a worker and of other processes of `mpirun` on this host.
/// Without `mpirun`, a single place, or places with a given number of threads, may use any core, so that several
/// workers do not share the first ones.
class CoreShares {
 public:
  /// `threads` of each place; 0: an equal share of the cores.
  CoreShares(int places, int threads);
  int threads() const { return threads_; }
  cpu_set_t of(int place) const;

 private:
  std::vector<int> cores_;
  int threads_, first_;
  bool divided_;
};

struct ChildProgram {
  std::vector<std::string> words;   ///< of `stiefel WORDS…`
  std::string id;                   ///< that the run must have
  std::filesystem::path log;        ///< its output is appended to this file
  std::filesystem::path directory;  ///< in which it starts; empty: the current one
};
/// Starts the program in its own process group. The environment variable STIEFEL_PARENT tells it to stop, with a
/// checkpoint, when this process ends, and STIEFEL_RUN_ID which id its run must have.
pid_t start_child(const ChildProgram& program, const cpu_set_t& cores);

/// Returns the last error after `begin` bytes of a log, without its "stiefel: "; the last line if there is no error,
/// and "nothing" if there is no line.
std::string last_message(const std::filesystem::path& log, std::uintmax_t begin);

}  // namespace stiefel
