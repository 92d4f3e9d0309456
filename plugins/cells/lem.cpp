// Long expressive memory (Rusch, Mishra, Erichson & Mahoney 2022, eq. 3), two states y and z with their own time steps.
// a = V x + b in the order step_z, step_y, z, y, with a map W for each, the last one of the new z:
//
//   d = Δσ(a_1 + W_1 y₋)   e = Δσ(a_2 + W_2 y₋)   q = tanh(a_z + W_z y₋)   z = (1 − d)∘z₋ + d∘q
//                                                 p = tanh(a_y + W_y z)    y = (1 − e)∘y₋ + e∘p
//
//   backward   g_y = ∂L/∂y, g_z = ∂L/∂z, each δ clipped before it is used:
//     δ_y = g_y∘e∘(1 − p²)   δ_2 = g_y∘(p − y₋)∘e∘(1 − e/Δ)   g_z += W_yᵀδ_y
//     δ_z = g_z∘d∘(1 − q²)   δ_1 = g_z∘(q − z₋)∘d∘(1 − d/Δ)
//     ∂L/∂z₋ = g_z∘(1 − d)   ∂L/∂y₋ = g_y∘(1 − e) + W_1ᵀδ_1 + W_2ᵀδ_2 + W_zᵀδ_z
//
// Saved rows: d, e, q, p, y, z; the output is y.
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class Lem final : public Cell<S> {
 public:
  struct Options {
    double step = 1;
    void describe(Schema& s) { s.field("step", step, "largest time step Δ").at_least(1e-6).at_most(1); }
  };

  Lem(const Options& options, CellContext context)
      : Cell<S>(context.real("lem", "real gates", ", or the cell elman")), n_(context.rows()), step_(S(options.step)) {}

  std::vector<MapSpec> maps() const override {
    return {{"step_z", n_, n_, 0}, {"step_y", n_, n_, 0}, {"z", n_, n_, 0}, {"y", n_, n_, 1}};
  }
  Index input_rows() const override { return 4 * n_; }
  Index saved_rows() const override { return 6 * n_; }
  Index output_row() const override { return 4 * n_; }
  Index state_rows() const override { return 2 * n_; }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S>, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t);
      const CMat<S> last = chunk.before(t);
      maps.add(0, 3, part(last, 4), rows_of(saved, 0, 3 * n_), scratch);
      for (Index j = 0; j < saved.cols(); ++j) move_z(saved.col(j).data(), last.col(j).data());
      maps.add(3, 1, part(saved, 5), part(saved, 3), scratch);
      for (Index j = 0; j < saved.cols(); ++j) move_y(saved.col(j).data(), last.col(j).data());
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S>, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      chunk.prefetch(t - 2);
      Mat<S> saved = chunk.at(t), delta = chunk.step(chunk.delta, t), dstate = chunk.receive(t, doutput);
      const CMat<S> last = chunk.before(t);
      Mat<S> g_y = part(dstate, 0);
      for (Index j = 0; j < saved.cols(); ++j)
        move_y_back(saved.col(j).data(), last.col(j).data(), g_y.col(j).data(), delta.col(j).data(), chunk.bound());
      maps.add_adjoint(3, 1, part(delta, 3), part(dstate, 1), scratch);
      for (Index j = 0; j < saved.cols(); ++j)
        move_z_back(saved.col(j).data(), last.col(j).data(), dstate.col(j).data() + n_, delta.col(j).data(),
                    chunk.bound());
      maps.add_adjoint(0, 3, rows_of(delta, 0, 3 * n_), g_y, scratch);
    }
    sink.map(0, 3, part(chunk.all_before(), 4), rows_of(chunk.delta, 0, 3 * n_));
    sink.map(3, 1, part(chunk.all(), 5), part(chunk.delta, 3));
  }

 private:
  template <class P> P part(const P& panel, Index number) const { return rows_of(panel, number * n_, n_); }

  // One column each: its saved rows, those of the step before.

  STIEFEL_SIMD_CLONES void move_z(S* column, const S* last) const {
    S *d = column, *e = d + n_, *q = d + 2 * n_, *z = d + 5 * n_;
    const S* last_z = last + 5 * n_;
    vector_sigmoid<S>(std::span<S>(d, 2 * n_), std::span<S>(d, 2 * n_));
    vector_tanh<S>(std::span<S>(q, n_), std::span<S>(q, n_));
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      d[k] *= step_;
      e[k] *= step_;
      z[k] = (1 - d[k]) * last_z[k] + d[k] * q[k];
    }
  }

  STIEFEL_SIMD_CLONES void move_y(S* column, const S* last) const {
    S *e = column + n_, *p = column + 3 * n_, *y = column + 4 * n_;
    const S* last_y = last + 4 * n_;
    vector_tanh<S>(std::span<S>(p, n_), std::span<S>(p, n_));
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) y[k] = (1 - e[k]) * last_y[k] + e[k] * p[k];
  }

  STIEFEL_SIMD_CLONES void move_y_back(const S* column, const S* last, S* g, S* delta, S bound) const {
    const S *e = column + n_, *p = column + 3 * n_, *last_y = last + 4 * n_;
    S *delta_e = delta + n_, *delta_p = delta + 3 * n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      delta_p[k] = clipped(g[k] * e[k] * (1 - p[k] * p[k]), bound);
      delta_e[k] = clipped(g[k] * (p[k] - last_y[k]) * e[k] * (1 - e[k] / step_), bound);
      g[k] *= 1 - e[k];
    }
  }

  STIEFEL_SIMD_CLONES void move_z_back(const S* column, const S* last, S* g, S* delta, S bound) const {
    const S *d = column, *q = column + 2 * n_, *last_z = last + 5 * n_;
    S *delta_d = delta, *delta_q = delta + 2 * n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      delta_q[k] = clipped(g[k] * d[k] * (1 - q[k] * q[k]), bound);
      delta_d[k] = clipped(g[k] * (q[k] - last_z[k]) * d[k] * (1 - d[k] / step_), bound);
      g[k] *= 1 - d[k];
    }
  }

  Index n_;
  S step_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<Lem>("lem", "long expressive memory"))
