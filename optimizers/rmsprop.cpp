// RMSprop (Tieleman & Hinton 2012) in the forms that the published codes use:
//
//   r ← ρ r + (1 − ρ) g²;   θ ← θ − η g / (√r + ε)   or, with epsilon_inside,   θ ← θ − η g / √(r + ε)
//
//   decay ρ  epsilon  epsilon_inside  accumulator_init r₀
//   0.9      1e-10    true            1      TensorFlow 1 (scoRNN): ones are a hidden warm-up,
//                                            initially ×0.001 for |g| = 1e-3
//   0.9      1e-6     true            0      Lasagne (Vorontsov et al.)
//   0.9      0        –               1e-3   uRNN (Arjovsky et al., Wisdom et al.)
//   0.9      1e-8     false           0      Keras 1 (Wisdom et al., MNIST)
//   0.99     1e-8     false           0      PyTorch (expRNN, nnRNN)
//   0.9      1e-8     true            0      scuRNN
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class RmsProp final : public Optimizer<S> {
 public:
  struct Options {
    double decay = 0.9;
    double epsilon = 1e-8;
    bool epsilon_inside = false;
    double accumulator_init = 0;
    void describe(Schema& s) {
      s.field("decay", decay, "ρ of the running mean of squared gradients").at_least(0).less_than(1);
      s.field("epsilon", epsilon, "ε of the denominator; with 0 an entry whose mean square is 0 does not move")
          .at_least(0);
      s.field("epsilon_inside", epsilon_inside, "√(r + ε) instead of √r + ε");
      s.field("accumulator_init", accumulator_init, "value r₀ of the running mean before the first step").at_least(0);
    }
  };
  explicit RmsProp(const Options& options) : options_(options) {}

  void attach(const std::vector<BlockSpec>& blocks) override {
    square_.clear();
    for (const BlockSpec& block : blocks)
      square_.push_back(Vector<S>::Constant(block.size, S(options_.accumulator_init)));
  }

  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    const auto g = as_vector(gradient).array();
    auto x = as_vector(theta).array();
    auto r = square_[std::size_t(block)].array();
    const S eta = S(rate), rho = S(options_.decay), epsilon = S(options_.epsilon);
    r = rho * r + S(1 - options_.decay) * g.square();
    if (epsilon < std::numeric_limits<S>::min())
      x -= eta * (r > S(0)).select(g / r.sqrt(), S(0));  // 0/0: no move
    else if (options_.epsilon_inside)
      x -= eta * g / (r + epsilon).sqrt();
    else
      x -= eta * g / (r.sqrt() + epsilon);
  }

  void serialise(Archive& archive) override {
    for (std::size_t i = 0; i < square_.size(); ++i) archive.array("square_" + std::to_string(i), square_[i]);
  }

 private:
  Options options_;
  std::vector<Vector<S>> square_;  // r of each block
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::optimizer<RmsProp>("rmsprop", "gradient divided by the root of its running mean square"))
