/// What the parts of the preloaded library share.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace inject {

enum class Mode { none, count, kill, fail, record, memory };

struct State {
  std::string folder, log;
  Mode mode = Mode::none;
  long at = 0;
  int error = ENOSPC;
  std::atomic<long> calls{0};
  std::recursive_mutex mutex;
  std::map<int, std::string> open_files;  // descriptor and path below the folder
  int log_file = -1;
};

/// Made at the first call.
State& state();

/// The next one of this name that the loader finds.
template <class F> F real(const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

/// While one lives, allocations of this thread are the library's own: they are not counted and do not fail.
class OwnMemory {
 public:
  OwnMemory() : before_(std::exchange(own(), true)) {}
  ~OwnMemory() { own() = before_; }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  static bool& own();

 private:
  bool before_;
};

}  // namespace inject
