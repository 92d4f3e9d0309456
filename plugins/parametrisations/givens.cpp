// Products of plane rotations, the EURNN (Jing, Shen, Dubček, Peurifoy, Skirlo, LeCun, Tegmark & Soljačić 2017): W = D
// G_L … G_2 G_1.
//
// A layer G rotates disjoint pairs of rows i, j by angles θ and φ, D = diag(e^{iω}); in the real case φ = 0 and there
// is no D:
//
//   y_i = cos θ x_i − e^{iφ} sin θ x_j         x = Gᴴy, x̄ = Gᴴȳ, u = e^{iφ}x_j = cos θ y_j − sin θ y_i, ū likewise:
//   y_j = sin θ x_i + e^{iφ} cos θ x_j         θ̄ = Re(conj(ȳ_j) y_i − conj(ȳ_i) y_j)     φ̄ = Im(ū conj(u))
//
//   style tunable   L layers with the pairs (0,1), (2,3), … and (1,2), (3,4), … in turn; for even n and L: L(n − 1)/2
//                   pairs; U(n) at L = n
//   style fft       n = 2^k, k layers: layer l pairs rows i and i + n/2^{l+1}; (n/2) log₂ n pairs
//
// A complex map has 2 parameters a pair and n phases ω: L(n − 1) + n or n log₂ n + n; a real one 1 a pair. The paper
// prints the phase on the first row, which with D on the left is a smaller family; its code has it on x_j, as here.
// Nothing is kept for the backward pass: layers are undone by their inverses.
#include "givens_layers.hpp"

#include <stiefel/plugin.hpp>

#include <bit>
#include <cmath>

namespace {

using namespace stiefel;

std::vector<GivensRun> tunable_layers(Index n, Index capacity) {
  std::vector<GivensRun> runs;
  for (Index l = 0, first = 0; l < capacity; ++l) {
    const Index start = l % 2, count = (n - start) / 2;
    runs.push_back({start, start + 1, 2, count, first});
    first += count;
  }
  return runs;
}

std::vector<GivensRun> fft_layers(Index n) {
  std::vector<GivensRun> runs;
  Index first = 0;
  for (Index distance = n / 2; distance >= 1; distance /= 2) {
    const Index blocks = n / (2 * distance);
    const bool wide = distance >= 4;  // consecutive rows make the longer run
    for (Index k = 0; k < (wide ? blocks : distance); ++k) {
      const Index i = wide ? 2 * distance * k : k, count = wide ? distance : blocks;
      runs.push_back({i, i + distance, wide ? 1 : 2 * distance, count, first});
      first += count;
    }
  }
  return runs;
}

template <class S> class Givens final : public Parametrisation<S> {
 public:
  struct Options {
    std::string style = "tunable", field = "complex", init = "uniform";
    Index capacity = 2;
    double angle = 3.14;
    void describe(Schema& s) {
      s.field("style", style, "tunable: `capacity` layers of neighboring rows; fft: log₂ n layers, for n a power of 2")
          .one_of({"tunable", "fft"});
      s.field("capacity", capacity, "number of layers L, for `style: tunable`; n layers reach every unitary matrix")
          .at_least(1)
          .at_most(1e8)
          .only_if(style == "tunable", "`style: tunable`");
      s.field("field", field, "type of the numbers in W").one_of({"complex", "real"});
      s.field("init", init, "angles at the start: U(±angle), or zero, which is the identity")
          .one_of({"uniform", "zero"});
      s.field("angle", angle, "bound of the initial angles; 3.14 as in the released code")
          .at_least(0)
          .only_if(init == "uniform", "`init: uniform`");
    }
  };
  static bool complex_pairs(const Options& options) { return options.field == "complex"; }

  Givens(const Options& options, Shape shape)
      : Parametrisation<S>(shape.square("givens")),
        options_(options),
        complex_(shape.complex),
        n_(complex_ ? shape.rows / 2 : shape.rows) {
    if (options.style == "fft" && !std::has_single_bit(std::size_t(n_)))
      throw Error("givens: `style: fft` needs a size n that is a power of 2, but n is " + std::to_string(n_) +
                  "; choose " + std::to_string(std::bit_ceil(std::size_t(n_))) + " or `style: tunable`");
    const Index layers = options.style == "fft" ? std::countr_zero(std::size_t(n_)) : options.capacity,
                even = options.style == "fft" ? layers : (layers + 1) / 2;
    pairs_ = even * (n_ / 2) + (layers - even) * ((n_ - 1) / 2);
    layers_.n = n_;
  }

  std::vector<BlockSpec> blocks() const override {
    if (!complex_) return {{"theta", pairs_}};
    return {{"theta", pairs_}, {"phi", pairs_}, {"omega", n_}};
  }

  void initialise(Blocks<S> theta, Rng& rng) const override {
    if (options_.init == "zero") return;
    for (Index b = 0; b < theta.count(); ++b)
      for (S& x : theta[b]) x = S(rng.uniform(-options_.angle, options_.angle));
  }

  void refresh(CBlocks<S> theta) override {
    const auto cosine = [](std::span<const S> x) {
      return as_vector(x).template cast<double>().array().cos().template cast<S>();
    };
    const auto sine = [](std::span<const S> x) {
      return as_vector(x).template cast<double>().array().sin().template cast<S>();
    };
    if (layers_.runs.empty())
      layers_.runs = options_.style == "fft" ? fft_layers(n_) : tunable_layers(n_, options_.capacity);
    layers_.c = cosine(theta[0]);
    layers_.s = sine(theta[0]);
    if (!complex_) return;
    layers_.e_re = cosine(theta[1]);
    layers_.e_im = sine(theta[1]);
    phase_re_ = cosine(theta[2]);
    phase_im_ = sine(theta[2]);
  }

  Index scratch(Index) const override { return 2 * this->rows(); }

  void apply(CMat<S> X, Mat<S> Y, Scratch<S>&) const override {
    for (Index k = 0; k < X.cols(); ++k) {
      Y.col(k) = X.col(k);
      givens_forward(layers_, Y.col(k).data());
      if (complex_) turn(Y.col(k).data(), S(1));
    }
  }

  void apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>&) const override {
    for (Index k = 0; k < dY.cols(); ++k) {
      S* g = dX.col(k).data();
      dX.col(k) = dY.col(k);
      if (complex_) turn(g, S(-1));
      givens_inverse(layers_, g);
    }
  }

  Index accumulator() const override { return complex_ ? 2 * pairs_ + n_ : pairs_; }

  void accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const override {
    Mat<S> y = scratch.take(this->rows(), 1), g = scratch.take(this->rows(), 1);
    S *dtheta = sum.data(), *dphi = dtheta + (complex_ ? pairs_ : 0);
    for (Index k = 0; k < X.cols(); ++k) {
      y = X.col(k);
      g = dY.col(k);
      givens_forward(layers_, y.data());
      if (complex_) {
        turn(g.data(), S(-1));
        as_vector(sum).tail(n_).array() +=
            g.bottomRows(n_).array() * y.topRows(n_).array() - g.topRows(n_).array() * y.bottomRows(n_).array();
      }
      givens_pullback(layers_, y.data(), g.data(), dtheta, dphi);
    }
  }

  void finish(CBlocks<S>, std::span<const S> sum, Blocks<S> dtheta) override {
    Index first = 0;
    for (Index b = 0; b < dtheta.count(); first += Index(dtheta[b].size()), ++b)
      as_vector(dtheta[b]) += as_vector(sum).segment(first, Index(dtheta[b].size()));
  }

  bool materialises() const override { return true; }

  Claim claim() const override { return {complex_ ? Claim::unitary : Claim::orthogonal}; }

  Cost cost(Index columns) const override {
    const double n = double(n_), pairs = double(pairs_), phases = complex_ ? 6 * n : 0;
    const double one = (complex_ ? 18 : 6) * pairs + phases, back = (complex_ ? 77 : 22) * pairs + 2 * phases;
    const double c = double(columns);
    return {(complex_ ? 4 : 2) * pairs, one * c, one * c, back * c, double(accumulator()), one * n, back * n, 0.12};
  }

 private:
  /// x ← e^{±iω}x.
  void turn(S* x, S sign) const {
    const S *c = phase_re_.data(), *s = phase_im_.data();
#pragma GCC ivdep
    for (Index i = 0; i < n_; ++i) {
      const S re = x[i], im = x[n_ + i], sine = sign * s[i];
      x[i] = c[i] * re - sine * im;
      x[n_ + i] = c[i] * im + sine * re;
    }
  }

  Options options_;
  bool complex_;
  Index n_, pairs_ = 0;
  GivensLayers<S> layers_;
  Vector<S> phase_re_, phase_im_;  // e^{iω}
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::parametrisation<Givens>("givens", "layers of plane rotations: EURNN, tunable or FFT style"))
