// A map whose file throws while it is loaded.
#include <cstdlib>
#include <stdexcept>

#include "plain_map.hpp"

namespace {
template <class S> class HostileStatic final : public PlainMap<S> {
 public:
  using PlainMap<S>::PlainMap;
};

const int thrown = std::getenv("HOSTILE_STATIC") ? throw std::runtime_error("no luck") : 0;
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileStatic>("hostile_static", "throws while it is loaded"))
