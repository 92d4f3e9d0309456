// A leaky cell: h_t = (1 − α) h_{t−1} + α u_t, u_t = tanh(a_t), a_t = W h_{t−1} + V x_t + b.
//
//   backward   g = ∂L/∂h_t      δ = α g (1 − u²), clipped      ∂L/∂h_{t−1} = (1 − α) g + Wᵀ δ      dW = Σ δ h_{t−1}ᵀ
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class CLASS final : public Cell<S> {
 public:
  struct Options {
    double leak = 0.5;
    void describe(Schema& s) { s.field("leak", leak, "share α of the new value").more_than(0).at_most(1); }
  };
  CLASS(const Options& options, CellContext context) : Cell<S>(context), n_(context.rows()), alpha_(S(options.leak)) {}

  std::vector<MapSpec> maps() const override { return {{"", n_, n_, 0}}; }
  Index input_rows() const override { return n_; }
  Index saved_rows() const override { return 2 * n_; }  // u over h
  Index output_row() const override { return n_; }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S>, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> u = rows_of(chunk.at(t), 0, n_), h = rows_of(chunk.at(t), n_, n_);
      const CMat<S> before = rows_of(chunk.before(t), n_, n_);
      maps.add(0, 1, before, u, scratch);
      for (Index b = 0; b < u.cols(); ++b) {
        const std::span<S> column(u.col(b).data(), std::size_t(n_));
        vector_tanh<S>(column, column);
      }
      h = (1 - alpha_) * before + alpha_ * u;
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S>, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      const Mat<S> u = rows_of(chunk.at(t), 0, n_);
      Mat<S> delta = chunk.step(chunk.delta, t), g = chunk.receive(t, doutput);
      delta = alpha_ * g.array() * (1 - u.array().square());
      delta = delta.unaryExpr([&](S x) { return clipped(x, chunk.bound()); });
      g *= 1 - alpha_;
      maps.add_adjoint(0, 1, delta, g, scratch);
    }
    sink.map(0, 1, rows_of(chunk.all_before(), n_, n_), chunk.delta);
  }

 private:
  Index n_;
  S alpha_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<CLASS>("NAME", "leaky cell: a part of the state is kept from step to step"))
