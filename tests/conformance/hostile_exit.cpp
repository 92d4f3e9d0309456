// A map that ends the program: by exit(0) in the call that HOSTILE_EXIT_CALL numbers, else without its handlers, with
// the exit code that HOSTILE_EXIT_CODE names, or leaving a process behind with 0.
#include <unistd.h>

#include <cstdlib>

#include "tests/plugins/plain_map.hpp"

namespace {
template <class S> class HostileExit final : public PlainMap<S> {
 public:
  using PlainMap<S>::PlainMap;
  void refresh(stiefel::CBlocks<S>) override {
    static int calls = 0;
    if (const char* last = std::getenv("HOSTILE_EXIT_CALL")) {
      if (++calls == std::atoi(last)) std::exit(0);
      return;
    }
    const char* code = std::getenv("HOSTILE_EXIT_CODE");
    if (!code && fork() == 0) sleep(600);
    std::_Exit(code ? std::atoi(code) : 0);
  }
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileExit>("hostile_exit", "ends the program"))
