// Schur form of a real matrix with trained eigenvalues, nnRNN (Kerg, Goyette, Puelma Touzel, Gidel, Vorontsov, Bengio &
// Lajoie 2019):
//
//   W = PΘPᵀ     P = exp(A), A skew-symmetric     Θ = blockdiag(γ_j R(θ_j)) + T
//                R(θ) = [cos θ, −sin θ; sin θ, cos θ]
//   pullback     P̄ = W̄PΘᵀ + W̄ᵀPΘ,   Θ̄ = PᵀW̄P,   γ̄_j = ⟨R(θ_j), Θ̄_jj⟩,   θ̄_j = γ_j⟨R′(θ_j), Θ̄_jj⟩,
//                Ā as in skew_exponential.hpp
//
// T is strictly upper triangular outside the 2 × 2 blocks: with T = 0 and γ = 1 the map is orthogonal, T alone makes it
// non-normal. The eigenvalues are γ_j e^{±iθ_j}. An odd n has a last block [γ_j]. The penalty δ Σ_j (γ_j − 1)² keeps
// the moduli near 1; weight decay of T is the optimizer's, by a group for the block T. T starts from zero.
#include <stiefel/linear_algebra.hpp>
#include <stiefel/plugin.hpp>

#include <numbers>

#include "skew_exponential.hpp"
#include "skew_hermitian.hpp"

namespace {

using namespace stiefel;

template <class S> class Nonnormal final : public Dense<S> {
 public:
  struct Options {
    std::string init = "henaff", angles = "uniform";
    double scale = 0.1, gamma_penalty = 0;
    void describe(Schema& s) {
      s.field("init", init,
              "A at the start: blocks [0, s; −s, 0] with s ~ U(−π, π) (henaff) or s = tan(t/2), t ~ U(0, π/2) "
              "(cayley); all entries "
              "U(±scale) (uniform); zero")
          .one_of({"henaff", "cayley", "uniform", "zero"});
      s.field("scale", scale, "bound of the initial values `uniform` of A")
          .at_least(0)
          .only_if(init == "uniform", "`init: uniform`");
      s.field("angles", angles, "θ at the start: U(−π, π), or 0, where W = I").one_of({"uniform", "zero"});
      s.field("gamma_penalty", gamma_penalty, "δ of the penalty δ Σ_j (γ_j − 1)² that is added to the loss")
          .at_least(0);
    }
  };

  Nonnormal(const Options& options, Shape shape)
      : Dense<S>(shape.square("nonnormal")), options_(options), n_(shape.rows) {}

  std::vector<BlockSpec> blocks() const override {
    return {{"A", n_ * (n_ - 1) / 2}, {"gamma", n_ - n_ / 2}, {"theta", n_ / 2}, {"T", n_ * (n_ - 1) / 2 - n_ / 2}};
  }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    initialise_skew<double>(theta[0], n_, Order::columns, options_.init, options_.scale, rng);
    as_vector(theta[1]).setOnes();
    if (options_.angles == "uniform")
      for (S& angle : theta[2]) angle = S(rng.uniform(-std::numbers::pi, std::numbers::pi));
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    exponential_.compute(skew_matrix<double>(theta[0], n_));
    P_ = exponential_.value();
    gamma_ = as_vector(theta[1]).template cast<double>();
    angles_ = as_vector(theta[2]).template cast<double>();
    Theta_ = Matrix<double>::Zero(n_, n_);
    for_each_entry([&](Index i, Index j, std::size_t k) { Theta_(i, j) = double(theta[3][k]); });
    for (Index b = 0; b < angles_.size(); ++b) Theta_.block<2, 2>(2 * b, 2 * b) = gamma_[b] * rotation(angles_[b]);
    if (n_ % 2 != 0) Theta_(n_ - 1, n_ - 1) = gamma_[n_ / 2];
    W = product(product(P_, Theta_), transposed(P_)).template cast<S>();
  }

  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    const Matrix<double> G = dW.template cast<double>(), right = product(G, P_),
                         dTheta = product(transposed(P_), right),
                         dP = product(right, transposed(Theta_)) + product(product(transposed(G), P_), Theta_);
    add_skew_gradient(dtheta[0], exponential_.adjoint(dP));
    for (Index b = 0; b < angles_.size(); ++b) {
      const Eigen::Matrix2d block = dTheta.block<2, 2>(2 * b, 2 * b);
      dtheta[1][std::size_t(b)] += S(rotation(angles_[b]).cwiseProduct(block).sum());
      dtheta[2][std::size_t(b)] += S(gamma_[b] * rotation(angles_[b] + std::numbers::pi / 2).cwiseProduct(block).sum());
    }
    if (n_ % 2 != 0) dtheta[1][std::size_t(n_ / 2)] += S(dTheta(n_ - 1, n_ - 1));
    for_each_entry([&](Index i, Index j, std::size_t k) { dtheta[3][k] += S(dTheta(i, j)); });
  }

  double penalty(CBlocks<S> theta, Blocks<S> dtheta) override {
    if (options_.gamma_penalty == 0) return 0;
    const Vector<double> excess = as_vector(theta[1]).template cast<double>().array() - 1;
    as_vector(dtheta[1]) += (2 * options_.gamma_penalty * excess).template cast<S>();
    return options_.gamma_penalty * excess.squaredNorm();
  }

  Cost cost(Index columns) const override {
    Cost cost = Dense<S>::cost(columns);
    const double cube = std::pow(double(n_), 3);
    cost.refresh = 13 * cube;
    cost.pullback = 18 * cube;
    return cost;
  }

  void record(Recorder& recorder) const override {
    double above = 0;
    for_each_entry([&](Index i, Index j, std::size_t) { above += Theta_(i, j) * Theta_(i, j); });
    recorder.scalar("t_norm", std::sqrt(above));
    recorder.scalar("gamma_min", gamma_.minCoeff());
    recorder.scalar("gamma_max", gamma_.maxCoeff());
    recorder.scalar("a_norm", exponential_.largest_angle());
  }

 private:
  static Eigen::Matrix2d rotation(double angle) {
    return Eigen::Matrix2d{{std::cos(angle), -std::sin(angle)}, {std::sin(angle), std::cos(angle)}};
  }

  /// Calls visit(i, j, k) for number k of T, which stands at (i, j) above the blocks; column after column.
  template <class F> void for_each_entry(F visit) const {
    std::size_t k = 0;
    for (Index j = 0; j < n_; ++j)
      for (Index i = 0; i < j - j % 2; ++i) visit(i, j, k++);
  }

  Options options_;
  Index n_;
  SkewExponential<double> exponential_;
  Matrix<double> P_, Theta_;
  Vector<double> gamma_, angles_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<Nonnormal>(
                          "nonnormal", "Schur form of rotations with trained moduli and a non-normal part (nnRNN)"))
