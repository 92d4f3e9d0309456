// A cell with two maps of one operand, a gate and a candidate: the smallest gated unit.
//
//   z = σ(W_z h + V_z x + b_z)   c = tanh(W_c h + V_c x + b_c)   h' = z ∘ h + (1 − z) ∘ c
//
//   backward   g = ∂L/∂h'   δ_z = g ∘ (h − c) ∘ z ∘ (1 − z)   δ_c = g ∘ (1 − z) ∘ (1 − c²)
//              ∂L/∂h = g ∘ z + W_zᵀδ_z + W_cᵀδ_c
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class TwoMapGated final : public Cell<S> {
 public:
  struct Options {
    double gate_bias = 1;
    void describe(Schema& s) {
      s.field("gate_bias", gate_bias, "initial bias of the gate; above 0 the state is kept at first");
    }
  };
  TwoMapGated(const Options& options, CellContext context)
      : Cell<S>(context), n_(context.rows()), gate_bias_(S(options.gate_bias)) {}

  std::vector<MapSpec> maps() const override { return {{"gate", n_, n_, 0}, {"candidate", n_, n_, 0}}; }
  Index input_rows() const override { return 2 * n_; }
  Index saved_rows() const override { return 3 * n_; }  // z, c, h'
  Index output_row() const override { return 2 * n_; }
  void initialise_bias(std::span<S> bias) const override {
    if (!bias.empty()) as_vector(bias).head(n_).array() += gate_bias_;
  }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S>, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      const Mat<S> saved = chunk.at(t);
      const CMat<S> before = state(chunk.before(t));
      maps.add(0, 2, before, rows_of(saved, 0, 2 * n_), scratch);
      Mat<S> z = rows_of(saved, 0, n_), c = rows_of(saved, n_, n_), h = rows_of(saved, 2 * n_, n_);
      z = (1 + (-z.array()).exp()).inverse();
      c = c.array().tanh();
      h = z.array() * before.array() + (1 - z.array()) * c.array();
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S>, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      const Mat<S> saved = chunk.at(t);
      const CMat<S> before = state(chunk.before(t));
      Mat<S> delta = chunk.step(chunk.delta, t);
      const Mat<S> gate = rows_of(saved, 0, n_), candidate = rows_of(saved, n_, n_);
      const auto z = gate.array(), c = candidate.array();
      Mat<S> g = chunk.receive(t, doutput);
      rows_of(delta, 0, n_) = (g.array() * (before.array() - c) * z * (1 - z)).matrix();
      rows_of(delta, n_, n_) = (g.array() * (1 - z) * (1 - c.square())).matrix();
      if (chunk.message_clip > 0) delta = delta.cwiseMax(-chunk.message_clip).cwiseMin(chunk.message_clip);
      g.array() *= z;
      maps.add_adjoint(0, 2, delta, g, scratch);
    }
    sink.map(0, 2, state(chunk.all_before()), chunk.delta);
  }

 private:
  CMat<S> state(const CMat<S>& saved) const { return rows_of(saved, 2 * n_, n_); }

  Index n_;
  S gate_bias_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<TwoMapGated>("two_map_gated", "minimal gated unit: a gate and a candidate"))
