// The restricted-capacity unitary matrix of the uRNN (Arjovsky, Shah & Bengio 2016, eq. 6), applied without forming it
// in O(n log n):
//
//   W = D₃ R₂ F⁻¹ D₂ Π R₁ F D₁     D_k = diag(e^{iθ_k}), R_k = I − 2 v_k v_kᴴ/‖v_k‖², F the unitary Fourier
//   transform, (Πx)_i = x_{perm(i)}
//
// 7n parameters: θ₁, θ₂, θ₃ and v₁, v₂ as Re over Im. Every n is allowed, and products of small primes are fast: a prime
// factor p costs O(np). Pullbacks of one factor, with g the gradient of what leaves it:
//
//   y = e^{iθ}x    x̄ = e^{−iθ}g, θ̄ = Im(x̄ conj x) = Im(g conj y)          permutation, Fourier transform: their
//                  inverses
//   y = h − αv     α = 2vᴴh/N, β = 2vᴴg/N, N = ‖v‖²: h̄ = g − βv, v̄ = P(−conj(α) g − conj(β) h)
//
// P takes away the multiples of v: neither length nor phase of v matters. It is applied once a step to the sum over
// columns and in double precision, for it is all that is left of cancelling terms.
//
// The released code reflects rows, which for columns is the reflection in conj(v): a convention, for v is drawn from a
// symmetric distribution. Fourier's transforms have no scale, so D₁ and D₂ carry 1/√n each.
#include "fourier.hpp"
#include "urnn_columns.hpp"

#include <stiefel/plugin.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace {

using namespace stiefel;

template <class S> class Urnn final : public Parametrisation<S> {
 public:
  struct Options {
    Index permutation_seed = 1;
    void describe(Schema& s) {
      s.field("permutation_seed", permutation_seed, "seed of the fixed random permutation Π").at_least(0);
    }
  };
  static bool complex_pairs(const Options&) { return true; }

  Urnn(const Options& options, Shape shape)
      : Parametrisation<S>(shape.square("urnn")),
        seed_(std::uint64_t(options.permutation_seed)),
        n_(shape.rows / 2),
        fourier_(n_) {}

  std::vector<BlockSpec> blocks() const override {
    return {{"theta_1", n_}, {"theta_2", n_}, {"theta_3", n_}, {"v_1", 2 * n_}, {"v_2", 2 * n_}};
  }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    using std::numbers::pi;
    const double bound = std::sqrt(6.0 / double(2 + 2 * n_));
    for (Index b = 0; b < 5; ++b)
      for (S& x : theta[b]) x = S(b < 3 ? rng.uniform(-pi, pi) : rng.uniform(-bound, bound));
  }

  void refresh(CBlocks<S> theta) override {
    if (permutation_.empty()) permutation_ = Rng(seed_, "permutation").permutation(n_);
    for (Index k = 0; k < 3; ++k) {
      const auto angle = as_vector(theta[k]).template cast<double>().array();
      const double scale = k < 2 ? 1 / std::sqrt(double(n_)) : 1;
      phases_[k].c = (scale * angle.cos()).template cast<S>();
      phases_[k].s = (scale * angle.sin()).template cast<S>();
    }
    for (Index k = 0; k < 2; ++k) {
      const auto v = as_vector(theta[3 + k]);
      const double square = v.template cast<double>().squaredNorm();
      if (square == 0)
        throw Error("urnn: v_" + std::to_string(k + 1) + " has become zero and defines no reflection; lower the rate",
                    Exit::diverged);
      UrnnReflection<S>& R = reflections_[k];
      R = {v, Vector<S>(2 * n_), S(2 / square)};
      R.iv << -v.tail(n_), v.head(n_);
    }
  }

  Index scratch(Index) const override { return 12 * n_ + fourier_.scratch(); }

  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    const auto [a, b, work] = take<2>(scratch);
    for (Index k = 0; k < X.cols(); ++k) {
      urnn_turn(phases_[0], X.col(k).data(), a);
      fourier_.forward(a, b, work);
      urnn_reflect(reflections_[0], b);
      permute(b, a);
      urnn_turn(phases_[1], a, a);
      fourier_.inverse(a, b, work);
      urnn_reflect(reflections_[1], b);
      urnn_turn(phases_[2], b, Y.col(k).data());
    }
  }

  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override {
    const auto [a, b, work] = take<2>(scratch);
    for (Index k = 0; k < dY.cols(); ++k) {
      urnn_turn_adjoint(phases_[2], dY.col(k).data(), a);
      urnn_reflect(reflections_[1], a);
      fourier_.forward(a, b, work);
      urnn_turn_adjoint(phases_[1], b, b);
      permute_back(b, a);
      urnn_reflect(reflections_[0], a);
      fourier_.inverse(a, b, work);
      urnn_turn_adjoint(phases_[0], b, dX.col(k).data());
    }
  }

  Index accumulator() const override { return 7 * n_; }

  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const override {
    const auto [first, h1, second, h2, a, g, work] = take<6>(scratch);
    S *theta = sum.data(), *v1 = theta + 3 * n_, *v2 = v1 + 2 * n_;
    for (Index k = 0; k < X.cols(); ++k) {
      urnn_turn(phases_[0], X.col(k).data(), first);
      fourier_.forward(first, h1, work);
      std::copy_n(h1, 2 * n_, a);
      const auto alpha_1 = urnn_reflect(reflections_[0], a);
      permute(a, second);
      urnn_turn(phases_[1], second, second);
      fourier_.inverse(second, h2, work);
      std::copy_n(h2, 2 * n_, a);
      const auto alpha_2 = urnn_reflect(reflections_[1], a);

      urnn_turn_adjoint(phases_[2], dY.col(k).data(), g);
      urnn_add_phases(n_, a, g, theta + 2 * n_);
      urnn_pull_back(reflections_[1], h2, alpha_2, g, v2);
      fourier_.forward(g, a, work);
      urnn_add_phases(n_, second, a, theta + n_);
      urnn_turn_adjoint(phases_[1], a, a);
      permute_back(a, g);
      urnn_pull_back(reflections_[0], h1, alpha_1, g, v1);
      fourier_.inverse(g, a, work);
      urnn_add_phases(n_, first, a, theta);
    }
  }

  void finish(CBlocks<S> theta, std::span<const S> sum, Blocks<S> dtheta) override {
    for (Index b = 0; b < 3; ++b) as_vector(dtheta[b]) += as_vector(sum).segment(b * n_, n_);
    for (Index b = 3; b < 5 && n_ > 1; ++b) {  // for n = 1 the reflection is −1 whatever v is
      const Vector<double> v = as_vector(theta[b]).template cast<double>();
      Vector<double> g = as_vector(sum).segment((2 * b - 3) * n_, 2 * n_).template cast<double>(), turned(2 * n_);
      turned << -v.tail(n_), v.head(n_);  // iv
      g -= (v.dot(g) * v + turned.dot(g) * turned) / v.squaredNorm();
      as_vector(dtheta[b]) += g.cast<S>();
    }
  }

  bool materialises() const override { return true; }

  Claim claim() const override { return {Claim::unitary}; }

  Cost cost(Index columns) const override {
    const double n = double(n_), one = 10 * n * std::log2(std::max(n, 2.0)) + 50 * n;
    const double all = one * double(columns), back = 2.2 * one;
    return {20 * n, all, all, back * double(columns), 7 * n, one * n, back * n, 0.17};
  }

 private:
  /// Columns, and what a Fourier transform works in.
  template <std::size_t Count> std::array<S*, Count + 1> take(Scratch<S>& scratch) const {
    S* memory = scratch.take(this->scratch(1), 1).data();
    std::array<S*, Count + 1> columns;
    for (std::size_t i = 0; i <= Count; ++i) columns[i] = memory + 2 * n_ * Index(i);
    return columns;
  }
  void permute(const S* x, S* y) const {
    for (Index i = 0; i < n_; ++i) {
      y[i] = x[permutation_[std::size_t(i)]];
      y[n_ + i] = x[n_ + permutation_[std::size_t(i)]];
    }
  }
  void permute_back(const S* y, S* x) const {
    for (Index i = 0; i < n_; ++i) {
      x[permutation_[std::size_t(i)]] = y[i];
      x[n_ + permutation_[std::size_t(i)]] = y[n_ + i];
    }
  }

  std::uint64_t seed_;
  Index n_;
  Fourier<S> fourier_;
  std::vector<std::int64_t> permutation_;
  UrnnPhases<S> phases_[3];
  UrnnReflection<S> reflections_[2];
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<Urnn>(
                          "urnn", "unitary matrix of Fourier transforms, phases, reflections and a permutation"))
