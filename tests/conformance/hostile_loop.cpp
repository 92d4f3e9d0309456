// A map that never comes back.
#include <atomic>
#include <cstdlib>

#include "tests/plugins/plain_map.hpp"

namespace {
template <class S> class HostileLoop final : public PlainMap<S> {
 public:
  using PlainMap<S>::PlainMap;
  void refresh(stiefel::CBlocks<S> theta) override {
    PlainMap<S>::refresh(theta);
    if (std::getenv("HOSTILE_LOOP_REFRESH")) never_return();
  }
  void apply_adjoint(stiefel::CMat<S>, stiefel::Mat<S>, stiefel::Scratch<S>&) const override { never_return(); }

 private:
  void never_return() const {
    while (!over_.load()) {
    }
  }
  std::atomic<bool> over_ = false;
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileLoop>("hostile_loop", "never comes back"))
