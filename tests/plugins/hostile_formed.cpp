// A map that is formed, with a fault in one of the two functions that its author writes; and a sound one.
#include <stiefel/error.hpp>
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class HostileFormed final : public Dense<S> {
 public:
  struct Options {
    std::string fault = "pullback";
    void describe(Schema& s) { s.field("fault", fault, "function that fails").one_of({"materialise", "pullback"}); }
  };
  HostileFormed(const Options& options, Shape shape) : Dense<S>(shape), fault_(options.fault) {}

  std::vector<BlockSpec> blocks() const override {
    return {{"W", this->rows() * this->cols(), this->rows(), this->cols()}};
  }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (S& entry : theta[0]) entry = S(0.2 * rng.normal());
  }
  void materialise(CBlocks<S> theta, Mat<S> W) override {
    if (fault_ == "materialise") throw Error("no matrix today");
    W = as_matrix(theta[0], W.rows(), W.cols());
  }
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override { dtheta[0][0] = dW(0, 0) + *nowhere_; }

 private:
  const std::string fault_;
  const volatile S* nowhere_ = nullptr;
};

template <class S> class SoundFormed final : public Dense<S> {
 public:
  struct Options {
    void describe(Schema&) {}
  };
  SoundFormed(const Options&, Shape shape) : Dense<S>(shape) {}

  std::vector<BlockSpec> blocks() const override {
    return {{"W", this->rows() * this->cols(), this->rows(), this->cols()}};
  }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (S& entry : theta[0]) entry = S(0.2 * rng.normal());
  }
  void materialise(CBlocks<S> theta, Mat<S> W) override { W = as_matrix(theta[0], W.rows(), W.cols()); }
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    as_matrix(dtheta[0], dW.rows(), dW.cols()) += dW;
  }
};

}  // namespace

STIEFEL_PLUGIN("1.0", parametrisation<HostileFormed>("hostile_formed", "dense map with a fault"),
               parametrisation<SoundFormed>("sound_formed", "dense map without one"))
