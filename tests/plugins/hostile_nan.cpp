// A map whose product holds a NaN.
#include <limits>

#include "plain_map.hpp"

namespace {
template <class S> class HostileNan final : public PlainMap<S> {
 public:
  using PlainMap<S>::PlainMap;
  void apply(stiefel::CMat<S> X, stiefel::Mat<S> Y, stiefel::Scratch<S>& scratch) const override {
    PlainMap<S>::apply(X, Y, scratch);
    if (Y.size() > 0) Y(0, 0) = std::numeric_limits<S>::quiet_NaN();
  }
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileNan>("hostile_nan", "dense map whose product holds a NaN"))
