// Symmetric-skew decomposition (Erichson, Azencot, Queiruga, Hodgkinson & Mahoney 2021) of a free matrix M:
//
//   W = (1 − β)(M + Mᵀ) + β(M − Mᵀ) − γI = M + (1 − 2β)Mᵀ − γI      pullback   M̄ = W̄ + (1 − 2β)W̄ᵀ
//
// β = 1 is skew-symmetric, β = ½ is M; −γI moves the eigenvalues to the left. Glorot's initial values of M
// are our choice.
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class SymmetricSkew final : public Dense<S> {
 public:
  struct Options {
    double beta = 0.8, gamma = 0.01;
    Initialiser init{"glorot_normal"};
    void describe(Schema& s) {
      s.field("beta", beta, "β: weight of the skew-symmetric part; 1 − β is that of the symmetric one")
          .at_least(0)
          .at_most(1);
      s.field("gamma", gamma, "damping γ").at_least(0);
      init.describe(s);
    }
  };

  SymmetricSkew(const Options& options, Shape shape)
      : Dense<S>(shape.square("symmetric_skew")),
        n_(shape.rows),
        of_transpose_(S(1 - 2 * options.beta)),
        gamma_(S(options.gamma)),
        init_(options.init) {}

  std::vector<BlockSpec> blocks() const override { return {{"M", n_ * n_, n_, n_}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override { init_.fill(as_matrix(theta[0], n_, n_), rng); }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    const CMat<S> M = as_matrix(theta[0], n_, n_);
    W = M + of_transpose_ * M.transpose();
    W.diagonal().array() -= gamma_;
  }
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    as_matrix(dtheta[0], n_, n_) += dW + of_transpose_ * dW.transpose();
  }

 private:
  Index n_;
  S of_transpose_, gamma_;
  Initialiser init_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<SymmetricSkew>(
                          "symmetric_skew", "weighted symmetric and skew-symmetric parts of a matrix, with damping"))
