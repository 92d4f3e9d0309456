// The restricted-capacity unitary matrix of the uRNN (Arjovsky, Shah & Bengio 2016, eq. 6), applied without forming it
// in O(n log n):
//
//   W = D₃ R₂ F⁻¹ D₂ Π R₁ F D₁     D_k = diag(e^{iθ_k}), R_k = I − 2 v_k v_kᴴ/‖v_k‖², F the unitary Fourier
//   transform, (Πx)_i = x_{perm(i)}
//
// 7n parameters: θ₁, θ₂, θ₃ and v₁, v₂ as Re over Im. Every n is allowed; products of small primes are fast, and with
// prime factors above 40 FFTW takes working memory at every transform. Pullbacks of one factor, with g the gradient of
// what leaves it:
//
//   y = e^{iθ}x    x̄ = e^{−iθ}g, θ̄ = Im(x̄ conj x) = Im(g conj y)          permutation, Fourier transform: their
//                  inverses
//   y = h − αv     α = 2vᴴh/N, β = 2vᴴg/N, N = ‖v‖²: h̄ = g − βv, v̄ = P(−conj(α) g − conj(β) h)
//
// P takes away the multiples of v: neither length nor phase of v matters. It is applied once a step to the sum over
// columns and in double precision, for it is all that is left of cancelling terms.
//
// The released code reflects rows, which for columns is the reflection in conj(v): a convention, for v is drawn from a
// symmetric distribution. The transform is FFTW's, without scale; D₁ and D₂ carry 1/√n each.
#include "urnn_columns.hpp"

#include <stiefel/plugin.hpp>

#include <fftw3.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numbers>

namespace {

using namespace stiefel;

template <class S> struct Fftw;
template <> struct Fftw<float> {
  using Plan = fftwf_plan;
  using Number = fftwf_complex;
  static constexpr auto plan = fftwf_plan_dft_1d;
  static constexpr auto execute = fftwf_execute_dft;
  static constexpr auto destroy = fftwf_destroy_plan;
};
template <> struct Fftw<double> {
  using Plan = fftw_plan;
  using Number = fftw_complex;
  static constexpr auto plan = fftw_plan_dft_1d;
  static constexpr auto execute = fftw_execute_dft;
  static constexpr auto destroy = fftw_destroy_plan;
};

constexpr std::size_t alignment = 64;  // bytes; plans hold for the alignment that they were made with

template <class S> S* aligned(S* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return memory + (alignment - address % alignment) % alignment / sizeof(S);
}
/// Numbers after which n pairs are aligned again.
template <class S> Index aligned_pairs(Index n) {
  constexpr Index block = Index(alignment / sizeof(S));
  return (2 * n + block - 1) / block * block;
}

/// Fourier transforms of n aligned pairs into others, without scale. Execution is concurrent; FFTW's planner is not.
template <class S> class Fourier {
 public:
  Fourier() = default;
  void plan(Index n) {
    std::vector<S> memory(std::size_t(2 * aligned_pairs<S>(n)) + alignment / sizeof(S));
    S *in = aligned(memory.data()), *out = in + aligned_pairs<S>(n);
    const std::scoped_lock lock(planner);
    for (const int sign : {FFTW_FORWARD, FFTW_BACKWARD})
      (sign == FFTW_FORWARD ? forward_ : inverse_) = Fftw<S>::plan(int(n), pairs(in), pairs(out), sign, FFTW_ESTIMATE);
    if (!forward_ || !inverse_) throw Error("urnn: FFTW has no transform of length " + std::to_string(n));
  }
  Fourier(const Fourier&) = delete;
  Fourier& operator=(const Fourier&) = delete;
  ~Fourier() {
    const std::scoped_lock lock(planner);
    if (forward_) Fftw<S>::destroy(forward_);
    if (inverse_) Fftw<S>::destroy(inverse_);
  }

  void forward(S* in, S* out) const { Fftw<S>::execute(forward_, pairs(in), pairs(out)); }
  void inverse(S* in, S* out) const { Fftw<S>::execute(inverse_, pairs(in), pairs(out)); }

 private:
  static auto* pairs(S* numbers) { return reinterpret_cast<typename Fftw<S>::Number*>(numbers); }

  inline static std::mutex planner;
  typename Fftw<S>::Plan forward_ = nullptr, inverse_ = nullptr;
};

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
      : Parametrisation<S>(shape.square("urnn")), seed_(std::uint64_t(options.permutation_seed)), n_(shape.rows / 2) {}

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
    prepare();
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
      R = {Vector<S>(2 * n_), Vector<S>(2 * n_), S(2 / square)};
      for (Index i = 0; i < n_; ++i) {
        R.v[2 * i] = R.iv[2 * i + 1] = v[i];
        R.v[2 * i + 1] = v[n_ + i];
        R.iv[2 * i] = -v[n_ + i];
      }
    }
  }

  Index scratch(Index) const override { return 6 * aligned_pairs<S>(n_) + Index(alignment / sizeof(S)); }

  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    const auto [a, b] = take<2>(scratch);
    for (Index k = 0; k < X.cols(); ++k) {
      urnn_enter(phases_[0], X.col(k).data(), a);
      fourier_.forward(a, b);
      urnn_reflect(reflections_[0], b);
      permute(b, a);
      urnn_turn(phases_[1], a);
      fourier_.inverse(a, b);
      urnn_reflect(reflections_[1], b);
      urnn_leave(phases_[2], b, Y.col(k).data());
    }
  }

  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override {
    const auto [a, b] = take<2>(scratch);
    for (Index k = 0; k < dY.cols(); ++k) {
      urnn_enter_adjoint(phases_[2], dY.col(k).data(), a);
      urnn_reflect(reflections_[1], a);
      fourier_.forward(a, b);
      urnn_turn_adjoint(phases_[1], b);
      permute_back(b, a);
      urnn_reflect(reflections_[0], a);
      fourier_.inverse(a, b);
      urnn_leave_adjoint(phases_[0], b, dX.col(k).data());
    }
  }

  Index accumulator() const override { return 7 * n_; }

  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const override {
    const auto [first, h1, second, h2, a, g] = take<6>(scratch);
    S *theta = sum.data(), *v1 = theta + 3 * n_, *v2 = v1 + 2 * n_;
    for (Index k = 0; k < X.cols(); ++k) {
      urnn_enter(phases_[0], X.col(k).data(), first);
      fourier_.forward(first, h1);
      std::copy_n(h1, 2 * n_, a);
      const auto alpha_1 = urnn_reflect(reflections_[0], a);
      permute(a, second);
      urnn_turn(phases_[1], second);
      fourier_.inverse(second, h2);
      std::copy_n(h2, 2 * n_, a);
      const auto alpha_2 = urnn_reflect(reflections_[1], a);

      urnn_enter_adjoint(phases_[2], dY.col(k).data(), g);
      urnn_add_phases(n_, a, g, theta + 2 * n_);
      urnn_pull_back(reflections_[1], h2, alpha_2, g, v2);
      fourier_.forward(g, a);
      urnn_add_phases(n_, second, a, theta + n_);
      urnn_turn_adjoint(phases_[1], a);
      permute_back(a, g);
      urnn_pull_back(reflections_[0], h1, alpha_1, g, v1);
      fourier_.inverse(g, a);
      urnn_add_phases(n_, first, a, theta);
    }
  }

  void finish(CBlocks<S> theta, std::span<const S> sum, Blocks<S> dtheta) override {
    for (Index b = 0; b < 3; ++b) as_vector(dtheta[b]) += as_vector(sum).segment(b * n_, n_);
    for (Index b = 3; b < 5 && n_ > 1; ++b) {  // for n = 1 the reflection is −1 whatever v is
      const Vector<double> v = as_vector(theta[b]).template cast<double>();
      Vector<double> g(2 * n_), turned(2 * n_);
      const S* pairs = sum.data() + (2 * b - 3) * n_;
      for (Index i = 0; i < n_; ++i) {
        g[i] = pairs[2 * i];
        g[n_ + i] = pairs[2 * i + 1];
      }
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
  void prepare() {
    if (!permutation_.empty()) return;
    permutation_ = Rng(seed_, "permutation").permutation(n_);
    fourier_.plan(n_);
  }
  template <std::size_t Count> std::array<S*, Count> take(Scratch<S>& scratch) const {
    S* memory = aligned(scratch.take(this->scratch(1), 1).data());
    std::array<S*, Count> columns;
    for (std::size_t i = 0; i < Count; ++i) columns[i] = memory + Index(i) * aligned_pairs<S>(n_);
    return columns;
  }
  void permute(const S* x, S* y) const {
    for (Index i = 0; i < n_; ++i) std::copy_n(x + 2 * permutation_[std::size_t(i)], 2, y + 2 * i);
  }
  void permute_back(const S* y, S* x) const {
    for (Index i = 0; i < n_; ++i) std::copy_n(y + 2 * i, 2, x + 2 * permutation_[std::size_t(i)]);
  }

  std::uint64_t seed_;
  Index n_;
  std::vector<std::int64_t> permutation_;
  Fourier<S> fourier_;
  UrnnPhases<S> phases_[3];
  UrnnReflection<S> reflections_[2];
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<Urnn>(
                          "urnn", "unitary matrix of Fourier transforms, phases, reflections and a permutation"))
