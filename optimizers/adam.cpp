// Adam (Kingma & Ba 2015): m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g², and at step t = 1, 2, …
//
//   bias_corrected   m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ):    θ ← θ − η m̂ / (√v̂ + ε)      (the paper, algorithm 1)
//   epsilon_hat      η_t = η √(1 − β₂ᵗ) / (1 − β₁ᵗ):        θ ← θ − η_t m / (√v + ε)    (TensorFlow 1, Lasagne)
//
// The forms differ in what ε is compared with: √v̂, or √v, which is smaller by √(1 − β₂ᵗ) in the first steps. With
// `decoupled`, the weight decay λ does not enter g: θ ← (1 − ηλ)θ before each step, which is AdamW as in PyTorch; the λ
// of Loshchilov & Hutter 2019 is ηλ here.
#include <cmath>

#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class Adam final : public Optimizer<S> {
 public:
  struct Options {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    std::string form = "bias_corrected";
    bool decoupled = false;
    void describe(Schema& s) {
      s.field("beta1", beta1, "β₁ of the running mean of gradients").at_least(0).less_than(1);
      s.field("beta2", beta2, "β₂ of the running mean of squared gradients").at_least(0).less_than(1);
      s.field("epsilon", epsilon, "ε of the denominator; with 0 an entry whose mean square is 0 does not move")
          .at_least(0);
      s.field("form", form, "bias_corrected: √v̂ + ε (the paper); epsilon_hat: √v + ε (TensorFlow 1, Lasagne)")
          .one_of({"bias_corrected", "epsilon_hat"});
      s.field("decoupled", decoupled, "weight_decay shrinks the parameters instead of adding to the gradient (AdamW)");
    }
  };
  explicit Adam(const Options& options) : options_(options), hat_(options.form == "epsilon_hat") {}

  bool decouples() const override { return options_.decoupled; }
  void attach(const std::vector<BlockSpec>& blocks) override {
    mean_.clear();
    square_.clear();
    for (const BlockSpec& block : blocks) {
      mean_.push_back(Vector<S>::Zero(block.size));
      square_.push_back(Vector<S>::Zero(block.size));
    }
    steps_.assign(blocks.size(), 0);
  }

  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    const std::size_t i = std::size_t(block);
    const auto g = as_vector(gradient).array();
    auto x = as_vector(theta).array();
    auto m = mean_[i].array(), v = square_[i].array();
    m = S(options_.beta1) * m + S(1 - options_.beta1) * g;
    v = S(options_.beta2) * v + S(1 - options_.beta2) * g.square();

    // Both forms are θ −= η_t m / (√v + ε_t); ε_t = ε √(1 − β₂ᵗ) in the paper's.
    const double t = double(++steps_[i]);
    const double root = std::sqrt(1 - std::pow(options_.beta2, t));
    const S eta = S(rate * root / (1 - std::pow(options_.beta1, t)));
    const S epsilon = S(hat_ ? options_.epsilon : options_.epsilon * root);
    if (epsilon < std::numeric_limits<S>::min())
      x -= eta * (v > S(0)).select(m / v.sqrt(), S(0));  // 0/0: no move
    else
      x -= eta * m / (v.sqrt() + epsilon);
  }

  void serialise(Archive& archive) override {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const std::string number = std::to_string(i);
      archive.value("steps_" + number, steps_[i]);
      archive.array("mean_" + number, mean_[i]);
      archive.array("square_" + number, square_[i]);
    }
  }

 private:
  Options options_;
  bool hat_;
  std::vector<Vector<S>> mean_, square_;  // m and v of each block
  std::vector<std::int64_t> steps_;       // t of each block
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::optimizer<Adam>("adam", "Adam: bias-corrected running means of the gradient and of its square"))
