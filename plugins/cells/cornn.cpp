// Coupled oscillatory recurrent network (Rusch & Mishra 2021, eq. 3): positions y and velocities z of n damped, driven
// oscillators.
//
//   u = tanh(W y₋ + 𝒲 z₋ + V x + b)    z = z₋ + Δ(u − γ y₋ − ε z₋)    y = y₋ + Δ z
//
//   backward   g_y = ∂L/∂y, G = ∂L/∂z + Δ g_y:   δ = Δ G∘(1 − u²), clipped
//     ∂L/∂y₋ = g_y − Δγ G + Wᵀδ       ∂L/∂z₋ = (1 − Δε) G + 𝒲ᵀδ       dW = Σ δ y₋ᵀ, d𝒲 = Σ δ z₋ᵀ
//
// W and 𝒲 are the maps position and velocity. The damping is explicit in z₋, as in the authors' code. Saved rows: u, y,
// z; the output is y.
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class Cornn final : public Cell<S> {
 public:
  struct Options {
    double step = 0.042, gamma = 2.7, epsilon = 4.7;
    void describe(Schema& s) {
      s.field("step", step, "time step Δ").at_least(1e-6);
      s.field("gamma", gamma, "frequency control γ").at_least(0);
      s.field("epsilon", epsilon, "damping ε").at_least(0);
      s.check(step * step * gamma + 2 * step * epsilon < 4, "step",
              "the oscillators are unstable unless Δ²γ + 2Δε < 4; choose a smaller step");
    }
  };

  Cornn(const Options& options, CellContext context)
      : Cell<S>(context.real("cornn", "real oscillators")),
        n_(context.rows()),
        step_(S(options.step)),
        gamma_(S(options.gamma)),
        epsilon_(S(options.epsilon)) {}

  std::vector<MapSpec> maps() const override { return {{"position", n_, n_, 0}, {"velocity", n_, n_, 1}}; }
  Index input_rows() const override { return n_; }
  Index saved_rows() const override { return 3 * n_; }
  Index output_row() const override { return n_; }
  Index state_rows() const override { return 2 * n_; }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S>, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> saved = chunk.at(t);
      const CMat<S> last = chunk.before(t);
      const Mat<S> u = part(saved, 0);
      maps.add(0, 1, part(last, 1), u, scratch);
      maps.add(1, 1, part(last, 2), u, scratch);
      for (Index j = 0; j < saved.cols(); ++j) move(saved.col(j).data(), last.col(j).data());
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S>, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      chunk.prefetch(t - 2);
      Mat<S> saved = chunk.at(t), delta = chunk.step(chunk.delta, t);
      Mat<S> dstate = chunk.receive(t, doutput);
      Mat<S> g_y = part(dstate, 0), g_z = part(dstate, 1);
      for (Index j = 0; j < saved.cols(); ++j)
        move_back(saved.col(j).data(), dstate.col(j).data(), delta.col(j).data(), chunk.bound());
      maps.add_adjoint(0, 1, delta, g_y, scratch);
      maps.add_adjoint(1, 1, delta, g_z, scratch);
    }
    sink.map(0, 1, part(chunk.all_before(), 1), chunk.delta);
    sink.map(1, 1, part(chunk.all_before(), 2), chunk.delta);
  }

 private:
  template <class P> P part(const P& panel, Index number) const { return rows_of(panel, number * n_, n_); }

  STIEFEL_SIMD_CLONES void move(S* column, const S* last) const {
    S *u = column, *y = u + n_, *z = u + 2 * n_;
    const S *last_y = last + n_, *last_z = last + 2 * n_;
    vector_tanh<S>(std::span<S>(u, n_), std::span<S>(u, n_));
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      z[k] = last_z[k] + step_ * (u[k] - gamma_ * last_y[k] - epsilon_ * last_z[k]);
      y[k] = last_y[k] + step_ * z[k];
    }
  }

  STIEFEL_SIMD_CLONES void move_back(const S* u, S* dstate, S* delta, S bound) const {
    S *g_y = dstate, *g_z = dstate + n_;
#pragma GCC ivdep
    for (Index k = 0; k < n_; ++k) {
      const S total = g_z[k] + step_ * g_y[k];
      delta[k] = clipped(step_ * total * (1 - u[k] * u[k]), bound);
      g_y[k] -= step_ * gamma_ * total;
      g_z[k] = (1 - step_ * epsilon_) * total;
    }
  }

  Index n_;
  S step_, gamma_, epsilon_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<Cornn>("cornn", "coupled oscillatory recurrent network"))
