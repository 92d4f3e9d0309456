// Skew-symmetric matrix with damping (Chang, Chen, Haber & Chi 2019): W = A − γI, A skew-symmetric.
//
//   pullback   of θ, the strict lower triangle of A: W̄_ij − W̄_ji for i > j
//
// The paper's W' − W'ᵀ − γI with all n² numbers of W' trained is the same map: only W' − W'ᵀ counts. Its
// AntisymmetricRNN is this map in the cell elman with `transition: residual`.
#include <stiefel/plugin.hpp>

#include <algorithm>

namespace {

using namespace stiefel;

template <class S> class Antisymmetric final : public Dense<S> {
 public:
  struct Options {
    double gamma = 0.01;
    Initialiser init{"glorot_normal"};
    void describe(Schema& s) {
      s.field("gamma", gamma, "damping γ").at_least(0);
      init.describe(s);
    }
  };

  Antisymmetric(const Options& options, Shape shape)
      : Dense<S>(shape.square("antisymmetric")), n_(shape.rows), gamma_(S(options.gamma)), init_(options.init) {}

  std::vector<BlockSpec> blocks() const override { return {{"A", n_ * (n_ - 1) / 2}}; }

  /// A = W' − W'ᵀ of an initialized W'.
  void initialise(Blocks<S> theta, Rng& rng) const override {
    Matrix<S> free(n_, n_);
    init_.fill(view(free), rng);
    add_skew(theta[0], free);
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    skew(theta[0], W);
    W.diagonal().array() -= gamma_;
  }
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override { add_skew(dtheta[0], dW); }

 private:
  Index n_;
  S gamma_;
  Initialiser init_;
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::parametrisation<Antisymmetric>(
                   "antisymmetric",
                   "skew-symmetric matrix with damping, A − γI; AntisymmetricRNN with elman's `transition: residual`"))
