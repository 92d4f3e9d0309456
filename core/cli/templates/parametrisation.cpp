// W = (I + A)⁻¹(I − A) with A skew-symmetric, an orthogonal matrix; θ holds the strict lower triangle of A, by columns.
//
//   M = (I + A)⁻¹      W = 2M − I      dW = −2 M dA M
#include <stiefel/linear_algebra.hpp>
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class CLASS final : public Dense<S> {
 public:
  struct Options {
    double angle = 0.1;
    void describe(Schema& s) { s.field("angle", angle, "standard deviation of the initial entries of A").at_least(0); }
  };
  CLASS(const Options& options, Shape shape) : Dense<S>(shape.square("NAME")), angle_(options.angle) {}

  std::vector<BlockSpec> blocks() const override { return {{"A", this->rows() * (this->rows() - 1) / 2}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (S& entry : theta[0]) entry = S(angle_ * rng.normal());
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    skew(theta[0], W);
    W.diagonal().array() += 1;
    invert(W);
    M_ = W;
    W *= 2;
    W.diagonal().array() -= 1;
  }
  // The gradient of A is −2 Mᵀ W̅ Mᵀ.
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    Matrix<S> left(M_.rows(), M_.cols()), dA(M_.rows(), M_.cols());
    multiply(transposed(M_), dW, view(left));
    multiply(left, transposed(M_), view(dA));
    dA *= -2;
    add_skew(dtheta[0], dA);
  }

  Claim claim() const override { return {Claim::orthogonal}; }

 private:
  double angle_;
  Matrix<S> M_;  // n × n
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<CLASS>("NAME", "Cayley transform of a skew-symmetric matrix"))
