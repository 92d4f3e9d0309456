// The Elman cell: a_t = W h_{t−1} + V x_t + b, h_t = φ(a_t).
//
//   backward   g_t = ∂L/∂h_t = Wᵀδ_{t+1} + (from the output)      δ_t = φ'(a_t)·g_t, clipped      dW = Σ δ_t h_{t−1}ᵀ
//
// Saved rows: h over a when φ's pullback needs a, which then stands above h; else h alone, written over a.
#include <stiefel/plugin.hpp>

#include <algorithm>
#include <limits>

namespace {

using namespace stiefel;

template <class S> class Elman final : public Cell<S> {
 public:
  struct Options {
    ActivationOptions activation;
    void describe(Schema& s) { s.section("activation", activation, "the function φ, by its kind or with its own options"); }
  };

  Elman(const Options& options, CellContext context)
      : Cell<S>(context),
        n_(context.rows()),
        activation_(Activation<S>::make(options.activation, n_, context.complex)),
        output_row_(activation_->keeps_input() ? n_ : 0) {}

  std::vector<MapSpec> maps() const override { return {{"", n_, n_, 0}}; }
  Index input_rows() const override { return n_; }
  Index saved_rows() const override { return output_row_ + n_; }
  Index output_row() const override { return output_row_; }

  std::vector<BlockSpec> blocks() const override {
    std::vector<BlockSpec> blocks = activation_->blocks();
    for (BlockSpec& block : blocks) block.name = "activation." + block.name;
    return blocks;
  }
  void initialise(Blocks<S> theta, Rng& rng) const override { activation_->initialise(theta, rng); }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S> theta, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      const Mat<S> saved = chunk.at(t);
      const Mat<S> before = view(chunk.saved.middleCols(t * chunk.columns, saved.cols()));
      const Mat<S> a = rows_of(saved, 0, n_);
      maps.add(0, 1, cview(hidden(before)), a, scratch);
      activation_->forward(cview(a), hidden(saved), theta);
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S> theta, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    const Blocks<S> dtheta = sink.blocks();
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      chunk.prefetch(t - 2);
      const Mat<S> saved = chunk.at(t), delta = chunk.step(chunk.delta, t);
      Mat<S> g = view(chunk.dstate.leftCols(saved.cols()));
      if (doutput.cols() > 0) g += chunk.step(doutput, t);
      if (chunk.dhidden.cols() > 0) chunk.step(chunk.dhidden, t) = g;
      activation_->backward(input(saved), cview(hidden(saved)), cview(g), delta, theta, dtheta);
      clip(delta, chunk.message_clip);
      maps.apply_adjoint(0, cview(delta), g, scratch);
    }
    sink.map(0, 1, cview(hidden(chunk.saved).leftCols(chunk.steps * chunk.columns)), cview(chunk.delta));
  }

  double kink_distance(const Chunk<S>& chunk, CBlocks<S> theta) const override {
    double distance = std::numeric_limits<double>::infinity();
    for (Index t = 0; t < chunk.steps; ++t) {
      const Mat<S> saved = chunk.at(t);
      distance = std::min(distance, activation_->kink_distance(input(saved), cview(hidden(saved)), theta));
    }
    return distance;
  }

  double flops(Index columns) const override { return 5.0 * double(n_) * double(columns); }

 private:
  Mat<S> hidden(const Mat<S>& saved) const { return rows_of(saved, output_row_, n_); }
  CMat<S> input(const Mat<S>& saved) const { return cview(rows_of(saved, 0, output_row_)); }

  static void clip(Mat<S> delta, S bound) {
    if (bound > 0) delta = delta.cwiseMax(-bound).cwiseMin(bound);
  }

  Index n_;
  std::unique_ptr<Activation<S>> activation_;
  Index output_row_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<Elman>("elman", "simple recurrent cell h' = φ(W h + V x + b)"))
