// A map that cannot be made.
#include <stdexcept>

#include "plain_map.hpp"

namespace {
template <class S> class HostileThrowCreate final : public PlainMap<S> {
 public:
  HostileThrowCreate(const typename PlainMap<S>::Options& options, stiefel::Shape shape) : PlainMap<S>(options, shape) {
    throw std::runtime_error("no map today");
  }
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileThrowCreate>("hostile_throw_create",
                                                                   "dense map whose constructor throws"))
