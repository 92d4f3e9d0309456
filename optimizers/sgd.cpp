// Stochastic gradient descent, with momentum μ (Polyak 1964) and Nesterov's look-ahead (Sutskever et al. 2013):
//
//   v ← μ v − η g;   θ ← θ + v   or, with nesterov,   θ ← θ + μ v − η g
//
// The second form is the one written for the parameters at the look-ahead point, so that the gradient is taken where θ
// is.
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class Sgd final : public Optimizer<S> {
 public:
  struct Options {
    double momentum = 0;
    bool nesterov = false;
    void describe(Schema& s) {
      s.field("momentum", momentum, "momentum μ; 0: plain gradient descent").at_least(0).less_than(1);
      s.field("nesterov", nesterov, "Nesterov's form: the gradient is taken at the look-ahead point");
      s.check(!nesterov || momentum > 0, "nesterov", "`nesterov: true` needs a `momentum` above 0, e.g. 0.9");
    }
  };
  explicit Sgd(const Options& options) : options_(options) {}

  void attach(const std::vector<BlockSpec>& blocks) override {
    velocity_.clear();
    for (const BlockSpec& block : blocks) velocity_.push_back(Vector<S>::Zero(options_.momentum > 0 ? block.size : 0));
  }

  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    const auto g = as_vector(gradient);
    auto x = as_vector(theta);
    const S eta = S(rate), mu = S(options_.momentum);
    if (options_.momentum == 0) {
      x -= eta * g;
      return;
    }
    Vector<S>& v = velocity_[std::size_t(block)];
    v = mu * v - eta * g;
    if (options_.nesterov)
      x += mu * v - eta * g;
    else
      x += v;
  }

  void serialise(Archive& archive) override {
    for (std::size_t i = 0; i < velocity_.size(); ++i) archive.array("velocity_" + std::to_string(i), velocity_[i]);
  }

 private:
  Options options_;
  std::vector<Vector<S>> velocity_;  // v of each block, empty without momentum
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::optimizer<Sgd>("sgd", "stochastic gradient descent, with momentum or Nesterov's momentum"))
