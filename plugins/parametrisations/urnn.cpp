// The restricted-capacity unitary matrix of the uRNN (Arjovsky, Shah & Bengio 2016, eq. 6), applied without forming it in O(n log n):
//
//   W = D₃ R₂ F⁻¹ D₂ Π R₁ F D₁     D_k = diag(e^{iθ_k}), R_k = I − 2 v_k v_kᴴ/‖v_k‖², F the unitary Fourier transform, (Πx)_i = x_{perm(i)}
//
// 7n parameters: θ₁, θ₂, θ₃ and v₁, v₂ as Re over Im. Every n is allowed; products of small primes are fast, and with prime factors above
// 40 FFTW takes working memory at every transform. Pullbacks of one factor, with g the gradient of what leaves it:
//
//   y = e^{iθ}x    θ̄ = Im(x̄ conj x), x̄ = e^{−iθ}g          permutation, Fourier transform: their inverses
//   y = h − αv     α = 2vᴴh/N, β = 2vᴴg/N, N = ‖v‖²: h̄ = g − βv, v̄ = P(−conj(α) g − conj(β) h)
//
// P takes away the multiples of v: neither length nor phase of v matters. It is applied once a step to the sum over columns and in double
// precision, for it is all that is left of cancelling terms.
//
// The released code reflects rows, which for columns is the reflection in conj(v): a convention, for v is drawn from a symmetric
// distribution. The transform is FFTW's, without scale; D₁ and D₂ carry 1/√n each.
#include <stiefel/plugin.hpp>

#include <fftw3.h>
#include <cmath>
#include <memory>
#include <mutex>
#include <numbers>

namespace {

using namespace stiefel;

template <class S> struct Fftw;
template <> struct Fftw<float> {
  using Plan = fftwf_plan;
  static constexpr auto plan = fftwf_plan_guru64_split_dft;
  static constexpr auto execute = fftwf_execute_split_dft;
  static constexpr auto destroy = fftwf_destroy_plan;
};
template <> struct Fftw<double> {
  using Plan = fftw_plan;
  static constexpr auto plan = fftw_plan_guru64_split_dft;
  static constexpr auto execute = fftw_execute_split_dft;
  static constexpr auto destroy = fftw_destroy_plan;
};

/// n complex numbers, Re over Im.
template <class S> struct Column {
  S* data;
  Index n;
  operator Column<const S>() const { return {data, n}; }
  auto re() const { return as_vector(std::span<S>(data, std::size_t(n))); }
  auto im() const { return as_vector(std::span<S>(data + n, std::size_t(n))); }
};

/// Fourier transforms of a column into another one, without scale. Execution is concurrent; FFTW's planner is not.
template <class S> class Fourier {
 public:
  explicit Fourier(Index n) {
    std::vector<S> in(std::size_t(2 * n)), out(in.size());
    const fftw_iodim64 size{n, 1, 1};
    constexpr unsigned flags = FFTW_ESTIMATE | FFTW_UNALIGNED;
    const std::scoped_lock lock(planner);
    forward_ = Fftw<S>::plan(1, &size, 0, nullptr, in.data(), in.data() + n, out.data(), out.data() + n, flags);
    // The inverse exchanges Re and Im. A plan is good for one distance between them, so it needs its own.
    inverse_ = Fftw<S>::plan(1, &size, 0, nullptr, in.data() + n, in.data(), out.data() + n, out.data(), flags);
    if (!forward_ || !inverse_) throw Error("urnn: FFTW has no transform of length " + std::to_string(n));
  }
  Fourier(const Fourier&) = delete;
  Fourier& operator=(const Fourier&) = delete;
  ~Fourier() {
    const std::scoped_lock lock(planner);
    if (forward_) Fftw<S>::destroy(forward_);
    if (inverse_) Fftw<S>::destroy(inverse_);
  }

  void forward(Column<S> in, Column<S> out) const { Fftw<S>::execute(forward_, in.data, in.data + in.n, out.data, out.data + in.n); }
  void inverse(Column<S> in, Column<S> out) const { Fftw<S>::execute(inverse_, in.data + in.n, in.data, out.data + in.n, out.data); }

 private:
  inline static std::mutex planner;
  typename Fftw<S>::Plan forward_ = nullptr, inverse_ = nullptr;
};

/// diag(c + is), of modulus 1 or 1/√n. The result may take the place of the operand.
template <class S> struct Diagonal {
  Vector<S> c, s;

  void apply(Column<const S> x, Column<S> y) const { multiply<1>(x, y); }
  void apply_adjoint(Column<const S> g, Column<S> x) const { multiply<-1>(g, x); }

 private:
  template <int Sign> void multiply(Column<const S> x, Column<S> y) const {
    const Index n = x.n;
    const S *c_ = c.data(), *s_ = s.data(), *x_re = x.data, *x_im = x.data + n;
    S *y_re = y.data, *y_im = y.data + n;
#pragma GCC ivdep
    for (Index i = 0; i < n; ++i) {
      const S re = x_re[i], im = x_im[i], sine = Sign * s_[i];
      y_re[i] = c_[i] * re - sine * im;
      y_im[i] = c_[i] * im + sine * re;
    }
  }
};

/// I − 2vvᴴ/‖v‖².
template <class S> struct Reflection {
  Vector<S> re, im;
  S scale = 0;  // 2/‖v‖²

  struct Coefficient {
    S re, im;
  };
  /// h ← h − αv; returns α.
  Coefficient apply(Column<S> h) const {
    const Coefficient a{scale * (re.dot(h.re()) + im.dot(h.im())), scale * (re.dot(h.im()) - im.dot(h.re()))};
    h.re() -= a.re * re - a.im * im;
    h.im() -= a.re * im + a.im * re;
    return a;
  }
  /// sum −= conj(α) g + conj(β) h for the h that entered and the α of it; g ← h̄.
  void pullback(Column<S> h, Coefficient a, Column<S> g, Column<S> sum) const {
    sum.re() -= a.re * g.re() + a.im * g.im();
    sum.im() -= a.re * g.im() - a.im * g.re();
    const Coefficient b = apply(g);
    sum.re() -= b.re * h.re() + b.im * h.im();
    sum.im() -= b.re * h.im() - b.im * h.re();
  }
};

template <class S> class Urnn final : public Parametrisation<S> {
 public:
  struct Options {
    Index permutation_seed = 1;
    void describe(Schema& s) {
      s.field("permutation_seed", permutation_seed, "of the random numbers that the fixed permutation Π is drawn from").at_least(0);
    }
  };
  static bool complex_pairs(const Options&) { return true; }

  Urnn(const Options& options, Shape shape)
      : Parametrisation<S>(shape.square("urnn")),
        n_(shape.rows / 2),
        permutation_(Rng(std::uint64_t(options.permutation_seed), "permutation").permutation(n_)),
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
    for (Index k = 0; k < 3; ++k) {
      const auto angle = as_vector(theta[k]).template cast<double>().array();
      const double scale = k < 2 ? 1 / std::sqrt(double(n_)) : 1;
      diagonals_[k].c = (scale * angle.cos()).template cast<S>();
      diagonals_[k].s = (scale * angle.sin()).template cast<S>();
    }
    for (Index k = 0; k < 2; ++k) {
      const auto v = as_vector(theta[3 + k]);
      const double square = v.template cast<double>().squaredNorm();
      if (square == 0)
        throw Error("urnn: v_" + std::to_string(k + 1) + " has become zero and defines no reflection; lower the rate", Exit::diverged);
      reflections_[k] = {v.head(n_), v.tail(n_), S(2 / square)};
    }
  }

  Index scratch(Index) const override { return 5 * 2 * n_; }

  void apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const override {
    const Column<S> a = take(scratch), b = take(scratch);
    for (Index k = 0; k < X.cols(); ++k) {
      diagonals_[0].apply(column(X, k), a);
      fourier_.forward(a, b);
      reflections_[0].apply(b);
      permute(b, a);
      diagonals_[1].apply(a, a);
      fourier_.inverse(a, b);
      reflections_[1].apply(b);
      diagonals_[2].apply(b, column(Y, k));
    }
  }

  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const override {
    const Column<S> a = take(scratch), b = take(scratch);
    for (Index k = 0; k < dY.cols(); ++k) {
      diagonals_[2].apply_adjoint(column(dY, k), a);
      reflections_[1].apply(a);
      fourier_.forward(a, b);
      diagonals_[1].apply_adjoint(b, b);
      permute_back(b, a);
      reflections_[0].apply(a);
      fourier_.inverse(a, b);
      diagonals_[0].apply_adjoint(b, column(dX, k));
    }
  }

  Index accumulator() const override { return 7 * n_; }

  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const override {
    const Column<S> h1 = take(scratch), c = take(scratch), h2 = take(scratch), g = take(scratch), a = take(scratch);
    const auto phase = [&](Index k) { return Eigen::Map<Vector<S>>(sum.data() + k * n_, n_); };
    const auto add_phase = [](auto total, auto x, Column<S> gradient) {
      total.array() += gradient.im().array() * x.re().array() - gradient.re().array() * x.im().array();
    };
    for (Index k = 0; k < X.cols(); ++k) {
      diagonals_[0].apply(column(X, k), a);
      fourier_.forward(a, h1);
      copy(h1, a);
      const auto alpha_1 = reflections_[0].apply(a);
      permute(a, c);
      diagonals_[1].apply(c, c);
      fourier_.inverse(c, h2);
      copy(h2, a);
      const auto alpha_2 = reflections_[1].apply(a);

      diagonals_[2].apply_adjoint(column(dY, k), g);
      add_phase(phase(2), a, g);
      reflections_[1].pullback(h2, alpha_2, g, {sum.data() + 5 * n_, n_});
      fourier_.forward(g, a);
      add_phase(phase(1), c, a);
      diagonals_[1].apply_adjoint(a, a);
      permute_back(a, g);
      reflections_[0].pullback(h1, alpha_1, g, {sum.data() + 3 * n_, n_});
      fourier_.inverse(g, a);
      diagonals_[0].apply_adjoint(a, a);
      add_phase(phase(0), column(X, k), a);
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
  void materialise(CBlocks<S>, Mat<S> W) override {
    std::vector<S> memory(std::size_t(scratch(1)));
    Scratch<S> scratch{std::span<S>(memory)};
    // W = [[A, −B], [B, A]]: the columns of A and B are enough.
    const Matrix<S> I = Matrix<S>::Identity(2 * n_, n_);
    apply(cview(I), view(W.leftCols(n_)), scratch);
    W.topRightCorner(n_, n_) = -W.bottomLeftCorner(n_, n_);
    W.bottomRightCorner(n_, n_) = W.topLeftCorner(n_, n_);
  }
  void pullback(CBlocks<S> theta, CMat<S>, CMat<S> dW, Blocks<S> dtheta) override {
    std::vector<S> memory(std::size_t(scratch(1))), sum(std::size_t(accumulator()), S(0));
    Scratch<S> scratch{std::span<S>(memory)};
    const Matrix<S> I = Matrix<S>::Identity(2 * n_, n_);
    Matrix<S> gradient = dW.leftCols(n_);  // of the columns [A; B]
    gradient.topRows(n_) += dW.bottomRightCorner(n_, n_);
    gradient.bottomRows(n_) -= dW.topRightCorner(n_, n_);
    accumulate(cview(I), cview(gradient), sum, scratch);
    finish(theta, sum, dtheta);
  }

  Claim claim() const override { return {Claim::unitary}; }

  Cost cost(Index columns) const override {
    const double n = double(n_), one = 10 * n * std::log2(std::max(n, 2.0)) + 50 * n;
    const double all = one * double(columns), back = 2.2 * one;
    return {20 * n, all, all, back * double(columns), 7 * n, one * n, back * n, 0.07};
  }

  void serialise(Archive& archive) override { archive.array("permutation", permutation_); }

 private:
  Column<S> take(Scratch<S>& scratch) const { return {scratch.take(2 * n_, 1).data(), n_}; }
  Column<const S> column(const CMat<S>& X, Index k) const { return {X.col(k).data(), n_}; }
  Column<S> column(Mat<S>& X, Index k) const { return {X.col(k).data(), n_}; }
  static void copy(Column<S> from, Column<S> to) { std::copy_n(from.data, 2 * from.n, to.data); }
  void permute(Column<S> x, Column<S> y) const {
    for (Index i = 0; i < n_; ++i) {
      const Index k = permutation_[std::size_t(i)];
      y.data[i] = x.data[k];
      y.data[n_ + i] = x.data[n_ + k];
    }
  }
  void permute_back(Column<S> y, Column<S> x) const {
    for (Index i = 0; i < n_; ++i) {
      const Index k = permutation_[std::size_t(i)];
      x.data[k] = y.data[i];
      x.data[n_ + k] = y.data[n_ + i];
    }
  }

  Index n_;
  std::vector<std::int64_t> permutation_;
  Fourier<S> fourier_;
  Diagonal<S> diagonals_[3];
  Reflection<S> reflections_[2];
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::parametrisation<Urnn>("urnn", "unitary matrix of Fourier transforms, phases, reflections and a permutation"))
