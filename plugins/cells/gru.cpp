// Gated recurrent unit. a = V x + b in the order candidate, update, reset; W_z, W_r, W_q are the maps update, reset,
// candidate:
//
//   z = σ(a_z + W_z h₋)   r = σ(a_r + W_r h₋)
//   q = tanh(a_q + W_q(r∘h₋))             reset: before  (Cho et al. 2014)
//   q = tanh(a_q + r∘s), s = W_q h₋ + b_q reset: after, b_q trained: one product for all three maps
//   h = w∘h₋ + (1 − w)∘q                  w = z for update: keep, w = 1 − z for update: new
//
//   backward   g = ∂L/∂h, each δ clipped before it is used:
//     δ_q = g∘(1 − w)∘(1 − q²)   δ_z = ±g∘(h₋ − q)∘z∘(1 − z), + for keep
//     before: d = W_qᵀδ_q, δ_r = d∘h₋∘r∘(1 − r), ∂L/∂h₋ = g∘w + d∘r + W_zᵀδ_z + W_rᵀδ_r,        dW_q = Σ δ_q (r∘h₋)ᵀ
//     after: δ_r = δ_q∘s∘r∘(1 − r), δ_s = δ_q∘r, ∂L/∂h₋ = g∘w + W_zᵀδ_z + W_rᵀδ_r + W_qᵀδ_s,     dW_q = Σ δ_s h₋ᵀ,
//       db_q = Σ δ_s
//
// Saved rows: q, z, r over r∘h₋ or s, over h; so for `after` the three results of the maps are neighbors, and so are
// their δ.
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class Gru final : public Cell<S> {
 public:
  struct Options {
    std::string reset = "before", update = "keep";
    void describe(Schema& s) {
      s.field("reset", reset,
              "where the reset gate acts: before the candidate's product, W(r∘h), or after it, r∘(W h + b_q) with a "
              "trained b_q")
          .one_of({"before", "after"});
      s.field("update", update,
              "what an open update gate z does: keep the state, z∘h + (1 − z)∘q, or take the new one, (1 − z)∘h + z∘q")
          .one_of({"keep", "new"});
    }
  };

  Gru(const Options& options, CellContext context)
      : Cell<S>(context.real("gru", "real gates", ", or the cell elman")),
        n_(context.rows()),
        after_(options.reset == "after"),
        keep_(options.update == "keep"),
        of_state_(after_ ? 3 : 2) {}

  std::vector<MapSpec> maps() const override {
    return {{"update", n_, n_, 0}, {"reset", n_, n_, 0}, {"candidate", n_, n_, after_ ? 0 : 1}};
  }
  Index input_rows() const override { return 3 * n_; }
  Index saved_rows() const override { return 5 * n_; }
  Index delta_rows() const override { return (1 + of_state_) * n_; }
  Index output_row() const override { return 4 * n_; }
  Index scratch(Index columns) const override { return after_ ? 0 : n_ * columns; }

  std::vector<BlockSpec> blocks() const override {
    if (!after_) return {};
    return {{"candidate.recurrent_bias", n_}};
  }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S> theta, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t);
      const CMat<S> last = hidden(chunk.before(t));
      if (after_) rows_of(saved, 3 * n_, n_).colwise() = as_vector(theta[0]);
      maps.add(0, of_state_, last, rows_of(saved, n_, of_state_ * n_), scratch);
      for (Index j = 0; j < saved.cols(); ++j) reset(saved.col(j).data(), last.col(j).data());
      if (!after_) maps.add(2, 1, rows_of(saved, 3 * n_, n_), rows_of(saved, 0, n_), scratch);
      for (Index j = 0; j < saved.cols(); ++j) update(saved.col(j).data(), last.col(j).data());
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S>, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    const Blocks<S> dtheta = sink.blocks();
    const S bound = chunk.bound();
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      const Mat<S> saved = chunk.at(t);
      const CMat<S> last = hidden(chunk.before(t));
      Mat<S> delta = chunk.step(chunk.delta, t);
      Mat<S> g = chunk.receive(t, doutput);
      for (Index j = 0; j < saved.cols(); ++j)
        update_back(saved.col(j).data(), last.col(j).data(), g.col(j).data(), delta.col(j).data(), bound);
      if (after_) {
        for (Index j = 0; j < saved.cols(); ++j) reset_after_back(saved.col(j).data(), delta.col(j).data(), bound);
        if (dtheta.count() > 0)
          for (Index j = 0; j < saved.cols(); ++j) as_vector(dtheta[0]) += delta.col(j).segment(3 * n_, n_);
      } else {
        const Index mark = scratch.used();
        Mat<S> d = scratch.take(n_, saved.cols());
        maps.apply_adjoint(2, rows_of(delta, 0, n_), d, scratch);
        for (Index j = 0; j < saved.cols(); ++j)
          reset_before_back(saved.col(j).data(), last.col(j).data(), d.col(j).data(), g.col(j).data(),
                            delta.col(j).data(), bound);
        scratch.release(mark);
      }
      maps.add_adjoint(0, of_state_, rows_of(delta, n_, of_state_ * n_), g, scratch);
    }
    sink.map(0, of_state_, hidden(chunk.all_before()), rows_of(chunk.delta, n_, of_state_ * n_));
    if (!after_) sink.map(2, 1, rows_of(chunk.all(), 3 * n_, n_), rows_of(chunk.delta, 0, n_));
  }

 private:
  CMat<S> hidden(const CMat<S>& panel) const { return rows_of(panel, 4 * n_, n_); }

  // One column each: its saved rows, h of the step before.

  STIEFEL_SIMD_CLONES void reset(S* column, const S* last) const {
    S *q = column, *z = q + n_, *r = q + 2 * n_, *operand = q + 3 * n_;
    vector_sigmoid<S>(std::span<S>(z, 2 * n_), std::span<S>(z, 2 * n_));
    if (after_) {
#pragma GCC ivdep
      for (Index k = 0; k < n_; ++k) q[k] += r[k] * operand[k];
    } else {
#pragma GCC ivdep
      for (Index k = 0; k < n_; ++k) operand[k] = r[k] * last[k];
    }
  }

  STIEFEL_SIMD_CLONES void update(S* column, const S* last) const {
    S *q = column, *z = q + n_, *h = q + 4 * n_;
    const S first = keep_ ? 0 : 1, sign = keep_ ? 1 : -1;
    vector_tanh<S>(std::span<S>(q, n_), std::span<S>(q, n_));
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      const S w = first + sign * z[k];
      h[k] = w * last[k] + (1 - w) * q[k];
    }
  }

  STIEFEL_SIMD_CLONES void update_back(const S* column, const S* last, S* g, S* delta, S bound) const {
    const S *q = column, *z = q + n_;
    S *delta_q = delta, *delta_z = delta + n_;
    const S first = keep_ ? 0 : 1, sign = keep_ ? 1 : -1;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      const S w = first + sign * z[k];
      delta_q[k] = clipped(g[k] * (1 - w) * (1 - q[k] * q[k]), bound);
      delta_z[k] = clipped(sign * g[k] * (last[k] - q[k]) * z[k] * (1 - z[k]), bound);
      g[k] *= w;
    }
  }

  STIEFEL_SIMD_CLONES void reset_after_back(const S* column, S* delta, S bound) const {
    const S *r = column + 2 * n_, *s = column + 3 * n_, *delta_q = delta;
    S *delta_r = delta + 2 * n_, *delta_s = delta + 3 * n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      delta_r[k] = clipped(delta_q[k] * s[k] * r[k] * (1 - r[k]), bound);
      delta_s[k] = delta_q[k] * r[k];
    }
  }

  STIEFEL_SIMD_CLONES void reset_before_back(const S* column, const S* last, const S* d, S* g, S* delta,
                                             S bound) const {
    const S* r = column + 2 * n_;
    S* delta_r = delta + 2 * n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      delta_r[k] = clipped(d[k] * last[k] * r[k] * (1 - r[k]), bound);
      g[k] += d[k] * r[k];
    }
  }

  Index n_;
  bool after_, keep_;
  Index of_state_;  // the maps of h₋ are the first of_state_ ones
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<Gru>("gru", "gated recurrent unit, the reset gate before or after the product"))
