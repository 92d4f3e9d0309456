// A map of free entries that claims to be orthogonal.
#include "plain_map.hpp"

namespace {
template <class S> class HostileClaim final : public PlainMap<S> {
 public:
  using PlainMap<S>::PlainMap;
  stiefel::Claim claim() const override { return {stiefel::Claim::orthogonal}; }
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileClaim>("hostile_claim",
                                                             "dense map that claims orthogonality and is not"))
