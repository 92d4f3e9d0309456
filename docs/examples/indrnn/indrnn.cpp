// IndRNN (Li, Li, Cook, Zhu & Gao 2018): each hidden unit sees only itself.
//
//   h_t = relu(u ∘ h_{t−1} + V x_t + b)      |u_k| ≤ γ^(1/T), so that no unit grows by more than γ over T steps
//
//   backward   g = ∂L/∂h_t      δ = g where h_t > 0, clipped      ∂L/∂h_{t−1} = u ∘ δ      u̅ = Σ δ ∘ h_{t−1}
#include <cmath>

#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class IndRnn final : public Cell<S> {
 public:
  struct Options {
    double gamma = 2;
    void describe(Schema& s) { s.field("gamma", gamma, "largest growth γ of a unit over a sequence").more_than(0); }
  };
  IndRnn(const Options& options, CellContext context)
      : Cell<S>(context), n_(context.rows()), bound_(S(std::pow(options.gamma, 1 / double(context.steps)))) {}

  std::vector<MapSpec> maps() const override { return {}; }  // so that experiments have no model.recurrent
  Index input_rows() const override { return n_; }
  Index saved_rows() const override { return n_; }  // V x + b, then h
  Index output_row() const override { return 0; }

  std::vector<BlockSpec> blocks() const override { return {{"u", n_}}; }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    for (S& u : theta[0]) u = S(rng.uniform(0, double(bound_)));
  }
  void after_step(Blocks<S> theta) const override {
    as_vector(theta[0]) = as_vector(theta[0]).cwiseMax(-bound_).cwiseMin(bound_).eval();
  }

  void forward(Chunk<S>& chunk, const Maps<S>&, CBlocks<S> theta, Scratch<S>&) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> h = chunk.at(t);
      h += as_vector(theta[0]).asDiagonal() * chunk.before(t);
      h = h.cwiseMax(S(0));
    }
  }
  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>&, CBlocks<S> theta, GradientSink<S>& sink,
                Scratch<S>&) const override {
    const Blocks<S> dtheta = sink.blocks();
    const S bound = chunk.bound();
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      const Mat<S> h = chunk.at(t);
      Mat<S> delta = chunk.step(chunk.delta, t), g = chunk.receive(t, doutput);
      delta = (h.array() > 0).select(g, S(0)).cwiseMax(-bound).cwiseMin(bound);
      if (dtheta.count() > 0) as_vector(dtheta[0]) += delta.cwiseProduct(chunk.before(t)).rowwise().sum();
      g = as_vector(theta[0]).asDiagonal() * delta;
    }
  }

 private:
  Index n_;
  S bound_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<IndRnn>("indrnn", "independent units h' = relu(u ∘ h + V x + b) with bounded u"))
