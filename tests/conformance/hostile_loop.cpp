// A map that never comes back.
#include <atomic>

#include "tests/plugins/plain_map.hpp"

namespace {
template <class S> class HostileLoop final : public PlainMap<S> {
 public:
  using PlainMap<S>::PlainMap;
  void apply_adjoint(stiefel::CMat<S>, stiefel::Mat<S>, stiefel::Scratch<S>&) const override {
    while (!over_.load()) {
    }
  }

 private:
  std::atomic<bool> over_ = false;
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<HostileLoop>("hostile_loop", "never comes back"))
