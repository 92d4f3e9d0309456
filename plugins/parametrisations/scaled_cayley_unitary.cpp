// Scaled Cayley transform in U(n), scuRNN (Maduranga, Helfrich & Ye 2019): W = (I + A)⁻¹(I − A)D, A skew-Hermitian, D =
// diag(e^{iθ}).
//
//   M = (I + A)⁻¹     Z = 2M − I     W = ZD     pullback V = 2MᴴW̄DᴴMᴴ     θ̄_j = Re(ie^{iθ_j}(W̄ᴴZ)_jj)
//   Re A_ij, Im A_ij for i > j see Re and Im of (V_ji − V_ij), (−V_ji − V_ij), and Im A_jj sees −Im V_jj
//
// The paper's Vᴴ − V has the derivatives above its diagonal, but twice the derivative on it. The released code uses (Vᴴ
// − V)/2: half the derivative off the diagonal and the full one on it, with the full derivative for θ. `gradient:
// released` does the same. A has n² real numbers, in the order of skew_hermitian.hpp, θ has n. M is computed in double
// precision.
#include <stiefel/plugin.hpp>

#include <stiefel/linear_algebra.hpp>

#include "skew_hermitian.hpp"

namespace {

using namespace stiefel;
using T = std::complex<double>;

template <class S> class ScaledCayleyUnitary final : public Dense<S> {
 public:
  struct Options {
    std::string init = "cayley", phases = "uniform", gradient = "exact";
    double scale = 0.1;
    void describe(Schema& s) {
      s.field("init", init,
              "A at the start: real blocks [0, s; −s, 0] with s = tan(t/2), t ~ U(0, π/2) (cayley) or s ~ U(−π, π) "
              "(henaff); all numbers "
              "U(±scale) (uniform); zero")
          .one_of({"cayley", "henaff", "uniform", "zero"});
      s.field("scale", scale, "bound of the initial values `uniform`")
          .at_least(0)
          .only_if(init == "uniform", "`init: uniform`");
      s.field("phases", phases, "θ at the start: U(0, 2π), or 0, where D = I").one_of({"uniform", "zero"});
      s.field("gradient", gradient,
              "gradient of A: the derivatives, or those of the released code, half as large off the diagonal")
          .one_of({"exact", "released"});
    }
  };
  static bool complex_pairs(const Options&) { return true; }

  ScaledCayleyUnitary(const Options& options, Shape shape)
      : Dense<S>(shape.square("scaled_cayley_unitary")), options_(options), n_(shape.rows / 2) {}

  std::vector<BlockSpec> blocks() const override { return {{"A", n_ * n_, n_, n_}, {"theta", n_}}; }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    initialise_skew<T>(theta[0], n_, Order::columns, options_.init, options_.scale, rng);
    if (options_.phases == "uniform")
      for (S& phase : theta[1]) phase = S(rng.uniform(0, 2 * std::numbers::pi));
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    A_ = skew_matrix<T>(theta[0], n_);
    M_ = A_;
    M_.diagonal().array() += 1;
    invert(view(M_));
    D_.resize(n_);
    for (Index j = 0; j < n_; ++j) D_[j] = std::polar(1.0, double(theta[1][std::size_t(j)]));
    Complex Z = 2 * M_;
    Z.diagonal().array() -= 1;
    write_real_form(Complex(Z * D_.asDiagonal()), W);
  }

  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    const Complex G = gradient_of_form<T>(dW), scaled = G * D_.conjugate().asDiagonal();
    Complex V = -2 * product(product(adjoint(M_), scaled), adjoint(M_));
    if (options_.gradient == "released")
      for (Index j = 0; j < n_; ++j)
        for (Index i = 0; i < n_; ++i)
          if (i != j) V(i, j) /= 2;
    add_skew_gradient(dtheta[0], V);
    for (Index j = 0; j < n_; ++j) {
      const T along = 2.0 * scaled.col(j).dot(M_.col(j)) - std::conj(scaled(j, j));  // e^{iθ_j}(W̄ᴴZ)_jj
      dtheta[1][std::size_t(j)] += S(-along.imag());
    }
  }

  Claim claim() const override { return {Claim::unitary}; }

  Cost cost(Index columns) const override {
    Cost cost = Dense<S>::cost(columns);
    const double cube = std::pow(double(n_), 3);
    cost.refresh = 8 * cube;
    cost.pullback = 16 * cube;
    return cost;
  }

  void record(Recorder& recorder) const override {
    // −iA is Hermitian; the eigenvalues of I + A are 1 + iλ.
    std::vector<double> values(std::size_t(n_), std::numeric_limits<double>::quiet_NaN());
    if (A_.allFinite()) {
      Complex hermitian = T(0, -1) * A_;
      hermitian_eigenvalues(view(hermitian), values);
    }
    double largest = 0, smallest = std::numeric_limits<double>::infinity();
    for (const double value : values)
      largest = std::max(largest, std::abs(value)), smallest = std::min(smallest, std::abs(value));
    recorder.scalar("a_norm", largest);
    recorder.scalar("condition", std::sqrt((1 + largest * largest) / (1 + smallest * smallest)));
  }

 private:
  Options options_;
  Index n_;  // complex numbers counted once
  Complex A_, M_;
  Eigen::VectorXcd D_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<ScaledCayleyUnitary>(
                          "scaled_cayley_unitary", "unitary matrix (I + A)⁻¹(I − A)D, A skew-Hermitian, D of phases"))
