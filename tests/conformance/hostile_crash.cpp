// A map whose apply() reads where nothing is.
#include "tests/plugins/plain_map.hpp"

namespace {
template <class S> class HostileCrash final : public PlainMap<S> {
 public:
  using PlainMap<S>::PlainMap;
  void apply(stiefel::CMat<S>, stiefel::Mat<S> Y, stiefel::Scratch<S>&) const override { Y(0, 0) = *nowhere_; }

 private:
  const volatile S* nowhere_ = nullptr;
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileCrash>("hostile_crash", "reads where nothing is"),
               stiefel::parametrisation<PlainMap>("after_hostile_crash", "a sound map"))
