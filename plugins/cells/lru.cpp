// Linear recurrent unit (Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu & De 2023): n complex numbers, each with a
// decay and a frequency.
//
//   x_t = λ∘x_{t−1} + γ∘(V u_t + b)     λ = exp(−e^ν + i e^φ)     γ = e^κ, initially √(1 − |λ|²)
//
//   backward   g = ∂L/∂x_t:   ∂L/∂(V u_t + b) = γ∘g    ∂L/∂x_{t−1} = conj(λ)∘g    λ̄ = Σ g∘conj(x_{t−1})
//     ν̄ = Re(conj(λ̄) λ)·(−e^ν)      φ̄ = Re(conj(λ̄) iλ)·e^φ      κ̄ = Re Σ conj(g)∘γ∘(V u_t + b)
//
// |λ| < 1 for every ν. There is no recurrent map and no activation: what follows the recurrence in the paper's blocks
// is left to the readout, which sees Re x over Im x, without the paper's skip term D u. The paper's V ~ N(0, 1/(2d)) is
// `input: {init: kaiming, scale: 0.5}`. Saved rows: V u + b, x, each Re over Im.
#include <stiefel/plugin.hpp>

#include <cmath>

namespace {

using namespace stiefel;

template <class S> class Lru final : public Cell<S> {
 public:
  struct Options {
    double r_min = 0, r_max = 1, max_phase = 6.28;
    void describe(Schema& s) {
      s.field("r_min", r_min, "smallest initial |λ|").at_least(0).at_most(1);
      s.field("r_max", r_max, "largest initial |λ|; |λ|² is uniform between the two").at_least(0).at_most(1);
      s.field("max_phase", max_phase, "largest initial argument of λ").more_than(0).units("rad");
      s.check(r_min < r_max, "r_min", "must be below r_max");
    }
  };

  Lru(const Options& options, CellContext context) : Cell<S>(context), options_(options), n_(context.units) {}

  std::vector<MapSpec> maps() const override { return {}; }
  Index input_rows() const override { return 2 * n_; }
  Index saved_rows() const override { return 4 * n_; }
  Index output_row() const override { return 2 * n_; }
  Index output_rows() const override { return 2 * n_; }
  Index scratch(Index) const override { return 5 * n_; }

  std::vector<BlockSpec> blocks() const override { return {{"nu", n_}, {"phi", n_}, {"log_gamma", n_}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    const double low = options_.r_min * options_.r_min, high = options_.r_max * options_.r_max;
    for (std::size_t j = 0; j < std::size_t(n_); ++j) {
      const double square = std::clamp(rng.uniform(low, high), 1e-12, 1 - 1e-12);
      theta[0][j] = S(std::log(-0.5 * std::log(square)));
      theta[1][j] = S(std::log(options_.max_phase * std::max(rng.uniform(), 1e-12)));
      theta[2][j] = S(0.5 * std::log(1 - square));
    }
  }

  void forward(Chunk<S>& chunk, const Maps<S>&, CBlocks<S> theta, Scratch<S>& scratch) const override {
    const Mat<S> constants = constants_of(theta, scratch);
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t);
      const CMat<S> last = chunk.before(t);
      for (Index j = 0; j < saved.cols(); ++j) step(constants, saved.col(j).data(), last.col(j).data() + 2 * n_);
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>&, CBlocks<S> theta, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    const Mat<S> constants = constants_of(theta, scratch);
    const Blocks<S> dtheta = sink.blocks();
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      chunk.prefetch(t - 2);
      Mat<S> saved = chunk.at(t), delta = chunk.step(chunk.delta, t), g = chunk.receive(t, doutput);
      const CMat<S> last = chunk.before(t);
      if (dtheta.count() > 0)
        for (Index j = 0; j < saved.cols(); ++j)
          add_gradient(constants, saved.col(j).data(), last.col(j).data() + 2 * n_, g.col(j).data(), dtheta);
      for (Index j = 0; j < saved.cols(); ++j)
        step_back(constants, g.col(j).data(), delta.col(j).data(), chunk.bound());
    }
  }

 private:
  /// Re λ, Im λ, γ, |log |λ||, arg λ.
  Mat<S> constants_of(CBlocks<S> theta, Scratch<S>& scratch) const {
    Mat<S> constants = scratch.take(n_, 5);
    for (Index k = 0; k < n_; ++k) {
      const auto j = std::size_t(k);
      const S rate = std::exp(theta[0][j]), phase = std::exp(theta[1][j]), modulus = std::exp(-rate);
      constants(k, 0) = modulus * std::cos(phase);
      constants(k, 1) = modulus * std::sin(phase);
      constants(k, 2) = std::exp(theta[2][j]);
      constants(k, 3) = rate;
      constants(k, 4) = phase;
    }
    return constants;
  }

  STIEFEL_SIMD_CLONES void step(const Mat<S>& constants, S* column, const S* last) const {
    const S *re = constants.data(), *im = re + n_, *gamma = re + 2 * n_, *u = column;
    S* x = column + 2 * n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      x[k] = re[k] * last[k] - im[k] * last[n_ + k] + gamma[k] * u[k];
      x[n_ + k] = re[k] * last[n_ + k] + im[k] * last[k] + gamma[k] * u[n_ + k];
    }
  }

  STIEFEL_SIMD_CLONES void add_gradient(const Mat<S>& constants, const S* u, const S* last, const S* g,
                                        Blocks<S> dtheta) const {
    const S *re = constants.data(), *im = re + n_, *gamma = re + 2 * n_, *rate = re + 3 * n_, *phase = re + 4 * n_;
    S *drate = dtheta[0].data(), *dphase = dtheta[1].data(), *dgamma = dtheta[2].data();
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      const S dre = g[k] * last[k] + g[n_ + k] * last[n_ + k], dim = g[n_ + k] * last[k] - g[k] * last[n_ + k];
      drate[k] -= rate[k] * (dre * re[k] + dim * im[k]);
      dphase[k] += phase[k] * (dim * re[k] - dre * im[k]);
      dgamma[k] += gamma[k] * (g[k] * u[k] + g[n_ + k] * u[n_ + k]);
    }
  }

  STIEFEL_SIMD_CLONES void step_back(const Mat<S>& constants, S* g, S* delta, S bound) const {
    const S *re = constants.data(), *im = re + n_, *gamma = re + 2 * n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      const S a = g[k], b = g[n_ + k];
      delta[k] = clipped(gamma[k] * a, bound);
      delta[n_ + k] = clipped(gamma[k] * b, bound);
      g[k] = re[k] * a + im[k] * b;
      g[n_ + k] = re[k] * b - im[k] * a;
    }
  }

  Options options_;
  Index n_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<Lru>("lru",
                                         "linear recurrent unit: independent complex decays and frequencies; the "
                                         "paper's input is {init: kaiming, scale: 0.5, bias: false}"))
