// A map that ends the program.
#include <cstdlib>

#include "../plugins/plain_map.hpp"

namespace {
template <class S> class HostileExit final : public PlainMap<S> {
 public:
  using PlainMap<S>::PlainMap;
  void refresh(stiefel::CBlocks<S>) override { std::_Exit(0); }
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileExit>("hostile_exit", "ends the program"))
