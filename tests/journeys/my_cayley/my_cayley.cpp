// W = (I + A)⁻¹(I − A) with A skew-symmetric; θ holds the strict lower triangle of A, by columns.
#include <stiefel/plugin.hpp>

#include <Eigen/LU>

namespace {
using namespace stiefel;

template <class S> class Cayley final : public Dense<S> {
 public:
  struct Options {
    double angle = 0.1;
    void describe(Schema& s) { s.field("angle", angle, "standard deviation of the initial entries of A").at_least(0); }
  };

  Cayley(const Options& options, Shape shape)
      : Dense<S>(shape.square("my_cayley")), options_(options), I_(Matrix<S>::Identity(shape.rows, shape.rows)) {}

  std::vector<BlockSpec> blocks() const override { return {{"A", this->rows() * (this->rows() - 1) / 2}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (S& t : theta[0]) t = S(options_.angle * rng.normal());
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    Matrix<S> A(this->rows(), this->rows());
    skew<S>(theta[0], view(A));
    lu_.compute(I_ + A);
    W = lu_.solve(I_ - A);
  }
  // (I + A) dW = −dA (W + I)  gives  A̅ = −(I + A)⁻ᵀ W̅ (W + I)ᵀ; θ sees A̅ − A̅ᵀ.
  void pullback(CBlocks<S>, CMat<S> W, CMat<S> dW, Blocks<S> dtheta) override {
    const Matrix<S> rhs = -dW * (W + I_).transpose();
    const Matrix<S> dA = lu_.transpose().solve(rhs);
    add_skew<S>(dtheta[0], cview(dA));
  }

  Claim claim() const override { return {Claim::orthogonal}; }

 private:
  Options options_;
  Matrix<S> I_;                        // n × n
  Eigen::PartialPivLU<Matrix<S>> lu_;  // of I + A
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<Cayley>("my_cayley", "Cayley transform of a skew-symmetric matrix"))
