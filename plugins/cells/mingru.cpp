// Minimal gated recurrent unit (Feng, Tung, Ahmed, Bengio & Hajimirsadeghi 2024): gate and candidate depend on the
// input alone. a = V x + b in the order gate, candidate:
//
//   z = σ(a_z)   q = a_q (linear) or g(a_q) (positive)   h = (1 − z)∘h₋ + z∘q      g(x) = x + ½ for x ≥ 0, else σ(x)
//
//   backward   g_h = ∂L/∂h:   δ_z = g_h∘(q − h₋)∘z∘(1 − z)   δ_q = g_h∘z∘g'(a_q)   ∂L/∂h₋ = g_h∘(1 − z)
//     g'(a_q) = 1 for q ≥ ½, else q(1 − q)
//
// There is no recurrent map. `positive` is the candidate of the paper's computation in logarithms. Saved rows: z, q, h.
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class MinGru final : public Cell<S> {
 public:
  struct Options {
    std::string candidate = "linear";
    void describe(Schema& s) {
      s.field("candidate", candidate,
              "the candidate q: V x + b (linear), or g(V x + b), g(x) = x + 0.5 for x ≥ 0 and σ(x) otherwise "
              "(positive)")
          .one_of({"linear", "positive"});
    }
  };

  MinGru(const Options& options, CellContext context)
      : Cell<S>(context), n_(context.rows()), positive_(options.candidate == "positive") {}

  std::vector<MapSpec> maps() const override { return {}; }
  Index input_rows() const override { return 2 * n_; }
  Index saved_rows() const override { return 3 * n_; }
  Index output_row() const override { return 2 * n_; }

  void forward(Chunk<S>& chunk, const Maps<S>&, CBlocks<S>, Scratch<S>&) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t);
      const CMat<S> last = chunk.before(t);
      for (Index j = 0; j < saved.cols(); ++j) move(saved.col(j).data(), last.col(j).data() + 2 * n_);
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>&, CBlocks<S>, GradientSink<S>&,
                Scratch<S>&) const override {
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      chunk.prefetch(t - 2);
      Mat<S> saved = chunk.at(t), delta = chunk.step(chunk.delta, t), g = chunk.receive(t, doutput);
      const CMat<S> last = chunk.before(t);
      for (Index j = 0; j < saved.cols(); ++j)
        move_back(saved.col(j).data(), last.col(j).data() + 2 * n_, g.col(j).data(), delta.col(j).data(),
                  chunk.bound());
    }
  }

 private:
  // One column each: its saved rows, h of the step before.

  STIEFEL_SIMD_CLONES void move(S* column, const S* last) const {
    S *z = column, *q = z + n_, *h = z + 2 * n_;
    vector_sigmoid<S>(std::span<S>(z, n_), std::span<S>(z, n_));
    if (positive_) {
      vector_sigmoid<S>(std::span<S>(q, n_), std::span<S>(h, n_));
#pragma GCC ivdep
      for (Index k = 0; k < n_; ++k) q[k] = q[k] >= 0 ? q[k] + S(0.5) : h[k];
    }
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) h[k] = (1 - z[k]) * last[k] + z[k] * q[k];
  }

  STIEFEL_SIMD_CLONES void move_back(const S* column, const S* last, S* g, S* delta, S bound) const {
    const S *z = column, *q = z + n_;
    S *delta_z = delta, *delta_q = delta + n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      const S slope = positive_ && q[k] < S(0.5) ? q[k] * (1 - q[k]) : 1;
      delta_z[k] = clipped(g[k] * (q[k] - last[k]) * z[k] * (1 - z[k]), bound);
      delta_q[k] = clipped(g[k] * z[k] * slope, bound);
      g[k] *= 1 - z[k];
    }
  }

  Index n_;
  bool positive_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<MinGru>("mingru", "minimal gated recurrent unit, whose gate sees only the input"))
