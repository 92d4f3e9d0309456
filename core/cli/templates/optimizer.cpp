// Momentum of normalized gradients: v ← μ v + (1 − μ) g, θ ← θ − η v / (√(mean v²) + ε).
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class CLASS final : public Optimizer<S> {
 public:
  struct Options {
    double momentum = 0.9;
    double epsilon = 1e-8;
    void describe(Schema& s) {
      s.field("momentum", momentum, "μ of the running mean of gradients").at_least(0).less_than(1);
      s.field("epsilon", epsilon, "ε of the denominator").more_than(0);
    }
  };
  explicit CLASS(const Options& options) : options_(options) {}

  void attach(const std::vector<BlockSpec>& blocks) override {
    mean_.clear();
    for (const BlockSpec& block : blocks) mean_.push_back(Vector<S>::Zero(block.size));
  }
  void step(Index block, double rate, std::span<S> theta, std::span<const S> gradient) override {
    Vector<S>& v = mean_[std::size_t(block)];
    v = S(options_.momentum) * v + S(1 - options_.momentum) * as_vector(gradient);
    const double size = v.template cast<double>().norm() / std::sqrt(double(std::max<Index>(v.size(), 1)));
    as_vector(theta) -= S(rate / (size + options_.epsilon)) * v;
  }
  void serialise(Archive& archive) override {
    for (std::size_t i = 0; i < mean_.size(); ++i) archive.array("mean_" + std::to_string(i), mean_[i]);
  }

 private:
  Options options_;
  std::vector<Vector<S>> mean_;  // v of each block
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::optimizer<CLASS>("NAME", "momentum of normalized gradients"))
