// Lion (Chen et al. 2023): θ ← θ − η sign(β₁ m + (1 − β₁) g), then m ← β₂ m + (1 − β₂) g.
//
// The weight decay is decoupled: the engine does θ ← (1 − ηλ)θ before each step.
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class Lion final : public Optimizer<S> {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.99;
    void describe(Schema& s) {
      s.field("beta1", beta1, "share β₁ of the momentum in the direction of a step").at_least(0).less_than(1);
      s.field("beta2", beta2, "decay β₂ of the momentum").at_least(0).less_than(1);
    }
  };
  explicit Lion(const Options& options) : beta1_(S(options.beta1)), beta2_(S(options.beta2)) {}

  bool decouples() const override { return true; }
  void attach(const std::vector<BlockSpec>& blocks) override {
    momentum_.clear();
    for (const BlockSpec& block : blocks) momentum_.push_back(Vector<S>::Zero(block.size));
  }
  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    const auto g = as_vector(gradient).array();
    auto m = momentum_[std::size_t(block)].array();
    as_vector(theta).array() -= S(rate) * (beta1_ * m + (1 - beta1_) * g).sign();
    m = beta2_ * m + (1 - beta2_) * g;
  }
  void serialise(Archive& archive) override {
    for (std::size_t i = 0; i < momentum_.size(); ++i) archive.array("momentum_" + std::to_string(i), momentum_[i]);
  }

 private:
  S beta1_, beta2_;
  std::vector<Vector<S>> momentum_;  // m of each block
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::optimizer<Lion>("lion", "signs of a momentum, with decoupled weight decay"))
