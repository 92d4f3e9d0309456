// A map whose gradient is one percent too large in its last entry. When it is unloaded, it ends the program
// with the exit code that HOSTILE_EXIT_LAST names, if it is set.
#include <unistd.h>

#include <cstdlib>

#include "plain_map.hpp"

namespace {
struct Last {
  ~Last() {
    if (const char* code = std::getenv("HOSTILE_EXIT_LAST")) _exit(std::atoi(code));
  }
} last;

template <class S> class HostileGradient final : public PlainMap<S> {
 public:
  using PlainMap<S>::PlainMap;
  void finish(stiefel::CBlocks<S> theta, std::span<const S> sum, stiefel::Blocks<S> dtheta) override {
    PlainMap<S>::finish(theta, sum, dtheta);
    dtheta[0].back() += S(0.01) * sum.back();
  }
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileGradient>("hostile_gradient",
                                                                "dense map with a wrong entry in its gradient"))
