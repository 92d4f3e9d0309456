// Gradient descent with momentum that does not save its velocity.
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class HostileOptimizer final : public Optimizer<S> {
 public:
  struct Options {
    void describe(Schema&) {}
  };
  explicit HostileOptimizer(const Options&) {}

  void attach(const std::vector<BlockSpec>& blocks) override {
    for (const BlockSpec& block : blocks) velocity_.push_back(Vector<S>::Zero(block.size));
  }
  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    Vector<S>& v = velocity_[std::size_t(block)];
    v = S(0.9) * v - S(rate) * as_vector(gradient);
    as_vector(theta) += v;
  }
  void serialise(Archive&) override {}

 private:
  std::vector<Vector<S>> velocity_;
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::optimizer<HostileOptimizer>("hostile_optimizer", "momentum that is not saved"))
