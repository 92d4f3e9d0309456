// A map whose gradient is one percent too large in its last entry. With HOSTILE_EXIT_LAST in the environment, it ends the
// program with success when it is unloaded.
#include <unistd.h>

#include <cstdlib>

#include "plain_map.hpp"

namespace {
struct Last {
  ~Last() {
    if (std::getenv("HOSTILE_EXIT_LAST")) _exit(0);
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
