// Long short-term memory. a = W h₋ + V x + b in the order input, forget, output, candidate, with a separate map W for
// each:
//
//   i = σ(a_i + p_i∘c₋)   f = σ(a_f + p_f∘c₋ + fixed forget bias)   q = tanh a_q
//   c = f∘c₋ + i∘q        o = σ(a_o + p_o∘c)                        h = o∘tanh c
//
// Peepholes p: none (p = 0), diagonal (trained vectors), or output_full: p_i = p_f = 0, and P c with a fifth map P for
// p_o∘c.
//
//   backward   g = ∂L/∂h, e = ∂L/∂c, each δ clipped before it is used:
//     δ_o = g∘tanh c∘o∘(1 − o)   e += g∘o∘(1 − tanh² c) + p_o∘δ_o   (P: Pᵀδ_o)
//     δ_i = e∘q∘i∘(1 − i)        δ_f = e∘c₋∘f∘(1 − f)               δ_q = e∘i∘(1 − q²)
//     ∂L/∂c₋ = e∘f + p_i∘δ_i + p_f∘δ_f     ∂L/∂h₋ = Wᵀδ     dp_i = Σ δ_i∘c₋   dp_f = Σ δ_f∘c₋   dp_o = Σ δ_o∘c   dP = Σ
//                                                           δ_o cᵀ
//
// Saved rows: i, f, o, q over h over c over tanh c. The state is h over c.
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class Lstm final : public Cell<S> {
 public:
  struct Options {
    double forget_bias = 1;
    bool forget_bias_fixed = false;
    std::string peepholes = "none";
    Initialiser peephole_init{"zero"};
    void describe(Schema& s) {
      s.field("forget_bias", forget_bias,
              "initial value of the trained bias of the forget gate, on top of `input.bias_init`");
      s.field(
          "forget_bias_fixed", forget_bias_fixed,
          "add forget_bias to the forget gate in every step and never train it, as TensorFlow's BasicLSTMCell does");
      s.field(
           "peepholes", peepholes,
           "how the gates read c; none: not at all; diagonal: the input and forget gates read the previous c and the "
           "output gate the new c, each weighted by a vector; output_full: only the output gate reads the new c, "
           "through the map output_peephole")
          .one_of({"none", "diagonal", "output_full"});
      peephole_init.describe(s, "peephole_");
      s.check(peephole_init.kind == "zero" || peepholes == "diagonal", "peephole_init",
              "needs `peepholes: diagonal`; set that, or remove `peephole_init`");
    }
  };

  Lstm(const Options& options, CellContext context)
      : Cell<S>(context.real("lstm", "real gates", ", or the cell elman")),
        n_(context.rows()),
        forget_bias_(S(options.forget_bias)),
        forget_bias_fixed_(options.forget_bias_fixed),
        diagonal_(options.peepholes == "diagonal"),
        full_(options.peepholes == "output_full"),
        peephole_init_(options.peephole_init) {}

  std::vector<MapSpec> maps() const override {
    std::vector<MapSpec> maps;
    for (const char* name : {"input", "forget", "output", "candidate"}) maps.push_back({name, n_, n_, 0});
    if (full_) maps.push_back({"output_peephole", n_, n_, 1});
    return maps;
  }
  Index input_rows() const override { return 4 * n_; }
  Index saved_rows() const override { return rows * n_; }
  Index output_row() const override { return hidden * n_; }
  Index state_rows() const override { return 2 * n_; }

  std::vector<BlockSpec> blocks() const override {
    if (!diagonal_) return {};
    return {{"peephole.input", n_}, {"peephole.forget", n_}, {"peephole.output", n_}};
  }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (Index k = 0; k < theta.count(); ++k) peephole_init_.fill(as_matrix(theta[k], n_, 1), rng);
  }
  void initialise_bias(std::span<S> bias) const override {
    if (forget_bias_fixed_ || forget_bias_ == 0) return;
    if (bias.empty())
      throw Error(
          "forget_bias is the initial value of a bias, but `input.bias` is false and there is none; set one of "
          "`input.bias: true`, `forget_bias_fixed: true` and `forget_bias: 0`");
    as_vector(bias).segment(n_, n_).array() += forget_bias_;
  }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S> theta, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t);
      const CMat<S> before = chunk.before(t);
      maps.add(0, 4, part(before, hidden), rows_of(saved, 0, 4 * n_), scratch);
      for (Index j = 0; j < saved.cols(); ++j) update_cell(saved.col(j).data(), before.col(j).data(), theta);
      if (full_) maps.add(4, 1, part(saved, state), part(saved, output), scratch);
      for (Index j = 0; j < saved.cols(); ++j) emit(saved.col(j).data(), theta);
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S> theta, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    const Blocks<S> dtheta = sink.blocks();
    const S bound = chunk.bound();
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      const Mat<S> saved = chunk.at(t);
      const CMat<S> before = chunk.before(t);
      Mat<S> delta = chunk.step(chunk.delta, t), dstate = chunk.receive(t, doutput);
      Mat<S> g = rows_of(dstate, 0, n_), e = rows_of(dstate, n_, n_);
      for (Index j = 0; j < saved.cols(); ++j)
        emit_back(saved.col(j).data(), g.col(j).data(), e.col(j).data(), delta.col(j).data(), bound, theta, dtheta);
      if (full_) maps.add_adjoint(4, 1, part(delta, output), e, scratch);
      for (Index j = 0; j < saved.cols(); ++j)
        update_cell_back(saved.col(j).data(), before.col(j).data(), e.col(j).data(), delta.col(j).data(), bound, theta,
                         dtheta);
      g.setZero();
      maps.add_adjoint(0, 4, delta, g, scratch);
    }
    sink.map(0, 4, part(chunk.all_before(), hidden), chunk.delta);
    if (full_) sink.map(4, 1, part(chunk.all(), state), part(chunk.delta, output));
  }

 private:
  /// Saved rows, n of each; the deltas are in the order of the first four, peepholes in that of the first three.
  enum Row : Index { input, forget, output, candidate, hidden, state, tanh_state, rows };

  template <class P> P part(const P& panel, Row row) const { return rows_of(panel, row * n_, n_); }
  S* part(S* column, Row row) const { return column + row * n_; }
  const S* part(const S* column, Row row) const { return column + row * n_; }

  // One column each; `column` and `before` are saved rows of a step and of the step before it.

  STIEFEL_SIMD_CLONES void update_cell(S* column, const S* before, CBlocks<S> theta) const {
    S *i = part(column, input), *f = part(column, forget), *q = part(column, candidate), *c = part(column, state),
      *tanh_c = part(column, tanh_state);
    const S* last = part(before, state);
    if (diagonal_) add_product(theta[input].data(), last, i), add_product(theta[forget].data(), last, f);
    if (forget_bias_fixed_)
      for (Index k = 0; k < n_; ++k) f[k] += forget_bias_;
    vector_sigmoid<S>(std::span<S>(i, 2 * n_), std::span<S>(i, 2 * n_));
    vector_tanh<S>(std::span<S>(q, n_), std::span<S>(q, n_));
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) c[k] = f[k] * last[k] + i[k] * q[k];
    vector_tanh<S>(std::span<S>(c, n_), std::span<S>(tanh_c, n_));
  }

  STIEFEL_SIMD_CLONES void emit(S* column, CBlocks<S> theta) const {
    S *o = part(column, output), *h = part(column, hidden);
    const S *c = part(column, state), *tanh_c = part(column, tanh_state);
    if (diagonal_) add_product(theta[output].data(), c, o);
    vector_sigmoid<S>(std::span<S>(o, n_), std::span<S>(o, n_));
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) h[k] = o[k] * tanh_c[k];
  }

  STIEFEL_SIMD_CLONES void emit_back(const S* column, const S* g, S* e, S* delta, S bound, CBlocks<S> theta,
                                     Blocks<S> dtheta) const {
    const S *o = part(column, output), *c = part(column, state), *tanh_c = part(column, tanh_state);
    S* delta_o = part(delta, output);
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      delta_o[k] = clipped(g[k] * tanh_c[k] * o[k] * (1 - o[k]), bound);
      e[k] += g[k] * o[k] * (1 - tanh_c[k] * tanh_c[k]);
    }
    if (!diagonal_) return;
    add_product(theta[output].data(), delta_o, e);
    if (dtheta.count() > 0) add_product(delta_o, c, dtheta[output].data());
  }

  STIEFEL_SIMD_CLONES void update_cell_back(const S* column, const S* before, S* e, S* delta, S bound, CBlocks<S> theta,
                                            Blocks<S> dtheta) const {
    const S *i = part(column, input), *f = part(column, forget), *q = part(column, candidate),
            *last = part(before, state);
    S *delta_i = part(delta, input), *delta_f = part(delta, forget), *delta_q = part(delta, candidate);
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      delta_i[k] = clipped(e[k] * q[k] * i[k] * (1 - i[k]), bound);
      delta_f[k] = clipped(e[k] * last[k] * f[k] * (1 - f[k]), bound);
      delta_q[k] = clipped(e[k] * i[k] * (1 - q[k] * q[k]), bound);
      e[k] *= f[k];
    }
    if (!diagonal_) return;
    add_product(theta[input].data(), delta_i, e);
    add_product(theta[forget].data(), delta_f, e);
    if (dtheta.count() == 0) return;
    add_product(delta_i, last, dtheta[input].data());
    add_product(delta_f, last, dtheta[forget].data());
  }

  STIEFEL_SIMD_CLONES void add_product(const S* x, const S* y, S* sum) const {
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) sum[k] += x[k] * y[k];
  }

  Index n_;
  S forget_bias_;
  bool forget_bias_fixed_, diagonal_, full_;
  Initialiser peephole_init_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<Lstm>("lstm", "long short-term memory, with or without peepholes"))
