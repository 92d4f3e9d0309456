// The full-capacity unitary matrix (Wisdom, Powers, Hershey, Le Roux & Atlas 2016): W itself is the parameter, on its
// manifold.
//
//   field complex   W = A + iB ∈ U(n), the block is [A; B], 2n × n; Ā = G₁₁ + G₂₂, B̄ = G₂₁ − G₁₂ of the gradient G of
//                   [[A, −B], [B, A]]
//   field real      W ∈ O(n), n × n: the geodesic network of Vorontsov, Trabelsi, Kadoury & Pal 2017 without a spectrum
//
// An optimizer that multiplies W by unitary matrices has to move it (geodesic_cayley, riemannian_adam). W is as far
// from unitary as rounding has taken it; `defect` records ‖WᴴW − I‖, `reproject_every` replaces W by its polar factor.
// det W of a real W keeps its sign.
//
// The released code reads only half of the gradient, Ā = G₁₁ and B̄ = G₂₁: `gradient: wisdom_topblock`. It is the top
// block row there, where states are rows. That direction is no gradient of W, so `stiefel check` finds it wrong.
#include "complex_form.hpp"

#include <stiefel/plugin.hpp>

#include <cmath>
#include <complex>
#include <numbers>
#include <stiefel/linear_algebra.hpp>

namespace {

using namespace stiefel;

/// D₃R₂F⁻¹D₂ΠR₁FD₁ with the initial values of Arjovsky, Shah & Bengio 2016: what the released code starts from.
Complex restricted_capacity(Index n, Rng& rng) {
  using std::numbers::pi;
  const auto phases = [&] {
    Eigen::VectorXcd D(n);
    for (auto& z : D) z = std::polar(1., rng.uniform(-pi, pi));
    return D;
  };
  const auto reflect = [&](Complex& W) {
    const double bound = std::sqrt(6.0 / double(2 + 2 * n));
    Eigen::VectorXcd v(n);
    for (auto& z : v) z = {rng.uniform(-bound, bound), rng.uniform(-bound, bound)};
    add_product<std::complex<double>>(v, product(adjoint(v), W), W, -2 / v.squaredNorm());
  };
  Complex F(n, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i)
      F(i, j) = std::polar(1 / std::sqrt(double(n)), -2 * pi * double(i * j % n) / double(n));

  Complex W = F * phases().asDiagonal();
  reflect(W);
  Complex permuted(n, n);
  for (Index i = 0; const std::int64_t k : rng.permutation(n)) permuted.row(i++) = W.row(k);
  W = product(adjoint(F), Complex(phases().asDiagonal() * permuted));
  reflect(W);
  return phases().asDiagonal() * W;
}

template <class S> class FullUnitary final : public Dense<S> {
 public:
  struct Options {
    std::string field = "complex", init = "haar", gradient = "true";
    Index reproject_every = 0;
    void describe(Schema& s) {
      s.field("field", field, "type of the numbers in W: W is unitary, or orthogonal").one_of({"complex", "real"});
      s.field("init", init,
              "W at the start: Haar-distributed; identity; a random restricted-capacity matrix D₃R₂F⁻¹D₂ΠR₁FD₁ (for "
              "`field: complex`)")
          .one_of({"haar", "identity", "restricted"});
      s.field("gradient", gradient, "gradient of W; wisdom_topblock: the half of it that the released code uses")
          .one_of({"true", "wisdom_topblock"});
      s.field("reproject_every", reproject_every,
              "steps after which W is replaced by the nearest unitary matrix; 0: never")
          .at_least(0)
          .units("steps");
      s.check(field == "complex" || init != "restricted", "init",
              "the restricted-capacity matrix is complex; choose haar or identity");
      s.check(field == "complex" || gradient == "true", "gradient",
              "only a complex W has a top block; choose `field: complex`");
    }
  };
  static bool complex_pairs(const Options& options) { return options.field == "complex"; }

  FullUnitary(const Options& options, Shape shape)
      : Dense<S>(shape.square("full_unitary")),
        options_(options),
        complex_(shape.complex),
        n_(complex_ ? shape.rows / 2 : shape.rows) {}

  std::vector<BlockSpec> blocks() const override {
    return {{"W", this->rows() * n_, this->rows(), n_, complex_ ? Manifold::unitary : Manifold::orthogonal}};
  }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    Complex W = Complex::Identity(n_, n_);
    if (options_.init == "haar") {
      for (auto& z : W.reshaped()) z = {rng.normal(), complex_ ? rng.normal() : 0};
      orthonormalise(view(W));
    } else if (options_.init == "restricted") {
      W = restricted_capacity(n_, rng);
    }
    parameter(theta) = as_parameter<S>(W, complex_);
  }

  void materialise(CBlocks<S> theta, Mat<S> W) override {
    const CMat<S> block = parameter(theta);
    W.leftCols(n_) = block;
    if (!complex_) return;
    W.topRightCorner(n_, n_) = -block.bottomRows(n_);
    W.bottomRightCorner(n_, n_) = block.topRows(n_);
  }
  void pullback(CBlocks<S>, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    Mat<S> gradient = parameter(dtheta);
    gradient += dW.leftCols(n_);
    if (!complex_ || options_.gradient != "true") return;
    gradient.topRows(n_) += dW.bottomRightCorner(n_, n_);
    gradient.bottomRows(n_) -= dW.topRightCorner(n_, n_);
  }

  void after_step(Blocks<S> theta) override {
    if (options_.reproject_every == 0 || ++steps_ % options_.reproject_every != 0) return;
    Complex W = from_parameter(parameter(theta), complex_);
    polar_factor(view(W));
    parameter(theta) = as_parameter<S>(W, complex_);
  }

  Claim claim() const override { return {complex_ ? Claim::unitary : Claim::orthogonal}; }

  void record(Recorder& recorder) const override {
    recorder.scalar("defect",
                    isometry_defect<std::complex<double>>(from_parameter(this->matrix().leftCols(n_), complex_)));
  }
  void serialise(Archive& archive) override { archive.value("steps", steps_); }

 private:
  template <class T> auto parameter(Blocks<T> blocks) const { return as_matrix(blocks[0], this->rows(), n_); }

  Options options_;
  bool complex_;
  Index n_;
  std::int64_t steps_ = 0;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<FullUnitary>("full_unitary",
                                                            "unitary or orthogonal matrix that is its own parameter"))
