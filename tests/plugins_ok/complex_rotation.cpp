// A complex map: the diagonal unitary matrix of phases, W = diag(exp(iθ_k)).
//
//   y_k = e^{iθ_k} x_k      ∂⟨dy, W x⟩/∂θ_k = cos θ_k Q_k − sin θ_k P_k
//   P_k = Σ Re(dy_k) Re(x_k) + Im(dy_k) Im(x_k),  Q_k = Σ Im(dy_k) Re(x_k) − Re(dy_k) Im(x_k)
#include <cmath>

#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class ComplexRotation final : public Parametrisation<S> {
 public:
  struct Options {
    void describe(Schema&) {}
  };
  static bool complex_pairs(const Options&) { return true; }
  ComplexRotation(const Options&, Shape shape)
      : Parametrisation<S>(shape.square("complex_rotation")), n_(shape.rows / 2), cos_(n_), sin_(n_) {}

  std::vector<BlockSpec> blocks() const override { return {{"phase", n_}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (S& phase : theta[0]) phase = S(rng.uniform(-M_PI, M_PI));
  }
  void refresh(CBlocks<S> theta) override {
    cos_ = as_vector(theta[0]).array().cos();
    sin_ = as_vector(theta[0]).array().sin();
  }
  void apply(CMat<S> X, Mat<S> Y, Scratch<S>&) const override { turn(X, Y, 1); }
  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>&) const override { turn(dY, dX, -1); }

  Index accumulator() const override { return 2 * n_; }
  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>&) const override {
    auto P = as_vector(sum).head(n_), Q = as_vector(sum).tail(n_);
    P +=
        (dY.topRows(n_).cwiseProduct(X.topRows(n_)) + dY.bottomRows(n_).cwiseProduct(X.bottomRows(n_))).rowwise().sum();
    Q +=
        (dY.bottomRows(n_).cwiseProduct(X.topRows(n_)) - dY.topRows(n_).cwiseProduct(X.bottomRows(n_))).rowwise().sum();
  }
  void finish(CBlocks<S>, std::span<const S> sum, Blocks<S> dtheta) override {
    as_vector(dtheta[0]) += cos_.cwiseProduct(as_vector(sum).tail(n_)) - sin_.cwiseProduct(as_vector(sum).head(n_));
  }
  Claim claim() const override { return {Claim::unitary}; }

 private:
  void turn(CMat<S> X, Mat<S> Y, S sign) const {
    const auto re = X.topRows(n_), im = X.bottomRows(n_);
    Y.topRows(n_) = cos_.asDiagonal() * re - sign * (sin_.asDiagonal() * im);
    Y.bottomRows(n_) = cos_.asDiagonal() * im + sign * (sin_.asDiagonal() * re);
  }

  Index n_;
  Vector<S> cos_, sin_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<ComplexRotation>("complex_rotation", "diagonal of complex phases"))
