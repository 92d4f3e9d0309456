// Lipschitz recurrent network (Erichson, Azencot, Queiruga, Hodgkinson & Mahoney 2021): steps of size ε of
// dh/dt = f(h) = A h + tanh(W h + V x + b), with x constant in each step.
//
//   euler   h = h₋ + ε f(h₋)            rk2   p = h₋ + (ε/2) f(h₋)   h = h₋ + ε f(p)
//
//   backward   G = ∂L/∂(f's value), u = tanh of the stage; m and δ are clipped before they are used:
//     m = G   δ = G∘(1 − u²)   ∂L/∂(f's operand) = Aᵀm + Wᵀδ   dA = Σ m operandᵀ   dW = Σ δ operandᵀ   d(V x + b) = Σ δ
//     euler   G = ε ∂L/∂h          rk2   G₂ = ε ∂L/∂h   G₁ = (ε/2) ∂L/∂p, and p passes ∂L/∂p on to h₋ as h does ∂L/∂h
//
// W and A are the maps nonlinear and linear; the paper's are `symmetric_skew`. Saved rows: u and h of each stage. Delta
// rows: δ over m; with rk2 Σ δ first, then those of each stage.
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class Lipschitz final : public Cell<S> {
 public:
  struct Options {
    double step = 0.01;
    std::string scheme = "euler";
    void describe(Schema& s) {
      s.field("step", step, "time step ε").at_least(1e-6);
      s.field("scheme", scheme, "how a step is taken: Euler's method (euler), or the midpoint method (rk2)")
          .one_of({"euler", "rk2"});
    }
  };

  Lipschitz(const Options& options, CellContext context)
      : Cell<S>(context.real("lipschitz", "a real state")),
        n_(context.rows()),
        step_(S(options.step)),
        stages_(options.scheme == "rk2" ? 2 : 1) {}

  std::vector<MapSpec> maps() const override { return {{"nonlinear", n_, n_, 0}, {"linear", n_, n_, 0}}; }
  Index input_rows() const override { return n_; }
  Index saved_rows() const override { return stages_ * 2 * n_; }
  Index delta_rows() const override { return delta_row(stages_); }
  Index output_row() const override { return saved_rows() - n_; }
  Index scratch(Index columns) const override { return (stages_ - 1) * n_ * columns; }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S>, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t);
      const CMat<S> last = hidden(chunk.before(t), stages_ - 1);
      if (stages_ == 2) rows_of(saved, 2 * n_, n_) = rows_of(saved, 0, n_);
      for (Index stage = 0; stage < stages_; ++stage) {
        hidden(saved, stage).setZero();
        maps.add(0, 2, stage == 0 ? last : CMat<S>(hidden(saved, 0)), rows_of(saved, stage * 2 * n_, 2 * n_), scratch);
        for (Index j = 0; j < saved.cols(); ++j)
          move(saved.col(j).data() + stage * 2 * n_, last.col(j).data(), length(stage));
      }
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S>, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      chunk.prefetch(t - 2);
      const Mat<S> saved = chunk.at(t);
      Mat<S> delta = chunk.step(chunk.delta, t), g = chunk.receive(t, doutput);
      if (stages_ == 1) {
        stage_back(0, saved, g, delta, chunk.bound());
        maps.add_adjoint(0, 2, delta, g, scratch);
        continue;
      }
      const Index mark = scratch.used();
      Mat<S> between = scratch.take(n_, saved.cols());
      between.setZero();
      stage_back(1, saved, g, delta, chunk.bound());
      maps.add_adjoint(0, 2, rows_of(delta, delta_row(1), 2 * n_), between, scratch);
      stage_back(0, saved, between, delta, chunk.bound());
      g += between;
      maps.add_adjoint(0, 2, rows_of(delta, delta_row(0), 2 * n_), g, scratch);
      for (Index j = 0; j < delta.cols(); ++j) sum(delta.col(j).data(), chunk.bound());
      scratch.release(mark);
    }
    sink.map(0, 2, hidden(chunk.all_before(), stages_ - 1), rows_of(chunk.delta, delta_row(0), 2 * n_));
    if (stages_ == 2) sink.map(0, 2, hidden(chunk.all(), 0), rows_of(chunk.delta, delta_row(1), 2 * n_));
  }

 private:
  template <class P> P hidden(const P& saved, Index stage) const { return rows_of(saved, (2 * stage + 1) * n_, n_); }
  /// First of the rows δ, m of a stage.
  Index delta_row(Index stage) const { return (stages_ == 2 ? n_ : 0) + stage * 2 * n_; }
  S length(Index stage) const { return stage == stages_ - 1 ? step_ : step_ / 2; }

  /// `g`: ∂L/∂h of the stage.
  void stage_back(Index stage, const Mat<S>& saved, const Mat<S>& g, Mat<S> delta, S bound) const {
    for (Index j = 0; j < saved.cols(); ++j)
      move_back(saved.col(j).data() + stage * 2 * n_, g.col(j).data(), delta.col(j).data() + delta_row(stage),
                length(stage), bound);
  }

  // One column each.

  STIEFEL_SIMD_CLONES void move(S* column, const S* last, S length) const {
    S *u = column, *h = u + n_;
    vector_tanh<S>(std::span<S>(u, n_), std::span<S>(u, n_));
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) h[k] = last[k] + length * (h[k] + u[k]);
  }

  STIEFEL_SIMD_CLONES void move_back(const S* u, const S* g, S* delta, S length, S bound) const {
    S* message = delta + n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      delta[k] = clipped(length * g[k] * (1 - u[k] * u[k]), bound);
      message[k] = clipped(length * g[k], bound);
    }
  }

  STIEFEL_SIMD_CLONES void sum(S* delta, S bound) const {
    const S *first = delta + delta_row(0), *second = delta + delta_row(1);
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) delta[k] = clipped(first[k] + second[k], bound);
  }

  Index n_;
  S step_;
  Index stages_;
};

}  // namespace

STIEFEL_PLUGIN("1.0",
               stiefel::cell<Lipschitz>("lipschitz",
                                        "Lipschitz recurrent network: steps of dh/dt = A h + tanh(W h + V x + b)"))
