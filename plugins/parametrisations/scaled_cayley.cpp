// Scaled Cayley transform (Helfrich, Willmott & Ye 2018): W = (I + A)⁻¹(I − A)D, A skew-symmetric, D = diag(±1) with ρ
// entries −1.
//
//   M = (I + A)⁻¹     W = (2M − I)D     pullback V = 2MᵀW̄DMᵀ, of which θ sees Vᵀ − V (theorem 3.2)
//
// θ holds the strict lower triangle of A, or its ℓ diagonals next to the main one (`bandwidth: ℓ`, section 3.2: nℓ −
// ℓ(ℓ + 1)/2 numbers), column after column. det W = (−1)^ρ for every θ. The eigenvalues of I + A are 1 ± iλ, so ‖M‖₂ ≤
// 1; an eigenvalue of W D near −1 makes A large, which the recorded ‖A‖₂ shows. M is computed in double precision: next
// to the time loop it costs nothing, and the defect ‖WᵀW − I‖ of a float W is then that of rounding W once, however
// large A has grown.
#include <stiefel/plugin.hpp>

#include <cmath>

#include "skew_hermitian.hpp"

namespace {

using namespace stiefel;

template <class S> class ScaledCayley final : public Dense<S> {
 public:
  struct Options {
    Index rho = -1, bandwidth = -1;
    std::string negatives = "last", init = "cayley";
    double scale = 0.1;
    void describe(Schema& s) {
      s.field("rho", rho, "number ρ of entries −1 in D; −1: half of them").at_least(-1);
      s.field("bandwidth", bandwidth,
              "number ℓ of diagonals of A below the main one that are not zero, 1 … n − 1; −1: all of them")
          .at_least(-1);
      s.field("negatives", negatives, "where the entries −1 of D are").one_of({"last", "first"});
      s.field("init", init,
              "A at the start: blocks [0, s; −s, 0] with s = tan(t/2), t ~ U(0, π/2) (cayley) or s ~ U(−π, π) "
              "(henaff); all entries U(±scale) "
              "(uniform); zero")
          .one_of({"cayley", "henaff", "uniform", "zero"});
      s.field("scale", scale, "bound of the initial values `uniform`")
          .at_least(0)
          .only_if(init == "uniform", "`init: uniform`");
    }
  };

  ScaledCayley(const Options& options, Shape shape)
      : Dense<S>(shape.square("scaled_cayley")),
        options_(options),
        n_(shape.rows),
        l_(options.bandwidth < 0 ? n_ - 1 : options.bandwidth),
        rho_(options.rho < 0 ? n_ / 2 : options.rho) {
    if (rho_ > n_)
      throw Error("scaled_cayley: `rho` is " + std::to_string(rho_) + ", but D has only " + std::to_string(n_) +
                  " entries; choose 0 … " + std::to_string(n_));
    if (l_ >= n_ || (l_ == 0 && n_ > 1))
      throw Error("scaled_cayley: `bandwidth` is " + std::to_string(l_) + ", but A has " + std::to_string(n_ - 1) +
                  " diagonals below the main one; choose " +
                  (n_ > 1 ? "1 … " + std::to_string(n_ - 1) + ", or -1 for all" : "-1"));
  }

  std::vector<BlockSpec> blocks() const override { return {{"A", n_ * l_ - l_ * (l_ + 1) / 2}}; }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    initialise_skew<double>(theta[0], n_, Order::columns, options_.init, options_.scale, rng, l_);
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    D_ = Vector<S>::Ones(n_);
    (options_.negatives == "last" ? D_.tail(rho_) : D_.head(rho_)).setConstant(-1);
    A_ = skew_matrix<double>(theta[0], n_, Order::columns, l_);
    Matrix<double> inverse = A_;
    inverse.diagonal().array() += 1;
    invert(view(inverse));
    M_ = inverse.template cast<S>();
    inverse *= 2;
    inverse.diagonal().array() -= 1;
    W = (inverse * D_.template cast<double>().asDiagonal()).template cast<S>();
  }

  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    const Matrix<S> scaled = dW * D_.asDiagonal(), V = product(product(transposed(M_), scaled), transposed(M_));
    add_skew_gradient<double>(dtheta[0], -2 * V.template cast<double>(), Order::columns, l_);
  }

  Claim claim() const override { return {Claim::orthogonal}; }

  Cost cost(Index columns) const override {
    Cost cost = Dense<S>::cost(columns);
    const double cube = std::pow(double(n_), 3);
    cost.refresh = 2 * cube;
    cost.pullback = 4 * cube;
    return cost;
  }

  void record(Recorder& recorder) const override {
    // AᵀA has the eigenvalues λ² of the pairs ±iλ of A; those of I + A are 1 ± iλ.
    std::vector<double> squares(std::size_t(n_), std::numeric_limits<double>::quiet_NaN());
    if (A_.allFinite()) {
      Matrix<double> square = product(transposed(A_), A_);
      hermitian_eigenvalues(view(square), squares);
    }
    const double smallest = std::max(squares.front(), 0.0), largest = std::max(squares.back(), 0.0);
    recorder.scalar("a_norm", std::sqrt(largest));
    recorder.scalar("condition", std::sqrt((1 + largest) / (1 + smallest)));
  }

 private:
  Options options_;
  Index n_, l_, rho_;
  Vector<S> D_;
  Matrix<double> A_;
  Matrix<S> M_;
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::parametrisation<ScaledCayley>("scaled_cayley",
                                                      "orthogonal matrix (I + A)⁻¹(I − A)D of a skew-symmetric A"))
