// Gated orthogonal recurrent unit (Jing, Gulcehre, Peurifoy, Shen, Tegmark, Soljačić & Bengio 2019). a = V x + b in the
// order candidate, update, reset; W_z and W_r are the maps update and reset, O is the map candidate, orthogonal in the
// paper:
//
//   z = σ(a_z + W_z h₋)   r = σ(a_r + W_r h₋)   s = O h₋   q = φ(a_q + r∘s)   h = z∘h₋ + (1 − z)∘q
//
//   backward   g = ∂L/∂h, each δ clipped before it is used:
//     δ_z = g∘(h₋ − q)∘z∘(1 − z)   δ_q = φ'·(g∘(1 − z))   δ_r = δ_q∘s∘r∘(1 − r)   δ_s = δ_q∘r
//     ∂L/∂h₋ = g∘z + W_zᵀδ_z + W_rᵀδ_r + Oᵀδ_s
//
// φ is the real modReLU of the paper with an initial bias of 0.01; the paper also has no b_q, which `input: {bias:
// false}` removes together with the biases of the gates. Saved rows: a_q + r∘s, z, r, s, q, h; deltas in the order q,
// z, r, s.
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class Goru final : public Cell<S> {
 public:
  struct Options {
    ActivationOptions activation{.kind = "modrelu", .bias_init = "constant"};
    double reset_bias = 2;
    void describe(Schema& s) {
      s.section("activation", activation, "the function φ of the candidate, by its kind or with its own options");
      s.field("reset_bias", reset_bias,
              "initial value of the trained bias of the reset gate, on top of `input.bias_init`");
    }
  };

  Goru(const Options& options, CellContext context)
      : Cell<S>(context.real("goru", "real gates", ", or the cell elman")),
        n_(context.rows()),
        reset_bias_(S(options.reset_bias)) {
    activation_ = Activation<S>::make(options.activation, n_, false);
  }

  std::vector<MapSpec> maps() const override {
    return {{"update", n_, n_, 0}, {"reset", n_, n_, 0}, {"candidate", n_, n_, 0}};
  }
  Index input_rows() const override { return 3 * n_; }
  Index saved_rows() const override { return 6 * n_; }
  Index delta_rows() const override { return 4 * n_; }
  Index output_row() const override { return 5 * n_; }

  std::vector<BlockSpec> blocks() const override {
    std::vector<BlockSpec> blocks = activation_->blocks();
    for (BlockSpec& block : blocks) block.name = "activation." + block.name;
    return blocks;
  }
  void initialise(Blocks<S> theta, Rng& rng) const override { activation_->initialise(theta, rng); }
  void initialise_bias(std::span<S> bias) const override {
    if (reset_bias_ == 0) return;
    if (bias.empty())
      throw Error(
          "reset_bias is the initial value of a bias, but `input.bias` is false and there is none; set "
          "`input.bias: true` or `reset_bias: 0`");
    as_vector(bias).segment(2 * n_, n_).array() += reset_bias_;
  }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S> theta, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t);
      const CMat<S> last = part(chunk.before(t), 5);
      part(saved, 3).setZero();
      maps.add(0, 3, last, rows_of(saved, n_, 3 * n_), scratch);
      for (Index j = 0; j < saved.cols(); ++j) open(saved.col(j).data());
      activation_->forward(part(saved, 0), part(saved, 4), theta);
      for (Index j = 0; j < saved.cols(); ++j) update(saved.col(j).data(), last.col(j).data());
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S> theta, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    const Blocks<S> dtheta = sink.blocks();
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      chunk.prefetch(t - 2);
      Mat<S> saved = chunk.at(t), delta = chunk.step(chunk.delta, t);
      const CMat<S> last = part(chunk.before(t), 5);
      Mat<S> g = chunk.receive(t, doutput);
      for (Index j = 0; j < saved.cols(); ++j)
        update_back(saved.col(j).data(), last.col(j).data(), g.col(j).data(), delta.col(j).data(), chunk.bound());
      const Mat<S> delta_q = part(delta, 0);
      activation_->backward(input(saved), part(saved, 4), delta_q, delta_q, theta, dtheta);
      for (Index j = 0; j < saved.cols(); ++j) open_back(saved.col(j).data(), delta.col(j).data(), chunk.bound());
      maps.add_adjoint(0, 3, rows_of(delta, n_, 3 * n_), g, scratch);
    }
    sink.map(0, 3, part(chunk.all_before(), 5), rows_of(chunk.delta, n_, 3 * n_));
  }

 private:
  template <class P> P part(const P& panel, Index number) const { return rows_of(panel, number * n_, n_); }
  CMat<S> input(const Mat<S>& saved) const { return rows_of(saved, 0, activation_->keeps_input() ? n_ : 0); }

  // One column each: its saved rows, h of the step before.

  STIEFEL_SIMD_CLONES void open(S* column) const {
    S *a = column, *z = column + n_, *r = column + 2 * n_, *s = column + 3 * n_;
    vector_sigmoid<S>(std::span<S>(z, 2 * n_), std::span<S>(z, 2 * n_));
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) a[k] += r[k] * s[k];
  }

  STIEFEL_SIMD_CLONES void update(S* column, const S* last) const {
    const S *z = column + n_, *q = column + 4 * n_;
    S* h = column + 5 * n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) h[k] = z[k] * last[k] + (1 - z[k]) * q[k];
  }

  STIEFEL_SIMD_CLONES void update_back(const S* column, const S* last, S* g, S* delta, S bound) const {
    const S *z = column + n_, *q = column + 4 * n_;
    S *dq = delta, *delta_z = delta + n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      dq[k] = g[k] * (1 - z[k]);
      delta_z[k] = clipped(g[k] * (last[k] - q[k]) * z[k] * (1 - z[k]), bound);
      g[k] *= z[k];
    }
  }

  STIEFEL_SIMD_CLONES void open_back(const S* column, S* delta, S bound) const {
    const S *r = column + 2 * n_, *s = column + 3 * n_;
    S *delta_q = delta, *delta_r = delta + 2 * n_, *delta_s = delta + 3 * n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      delta_q[k] = clipped(delta_q[k], bound);
      delta_r[k] = clipped(delta_q[k] * s[k] * r[k] * (1 - r[k]), bound);
      delta_s[k] = delta_q[k] * r[k];
    }
  }

  Index n_;
  S reset_bias_;
  std::unique_ptr<Activation<S>> activation_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<Goru>("goru", "gated recurrent unit around an orthogonal map"))
