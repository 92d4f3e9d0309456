// The Elman cell; φ(a) stands for φ(γa) with a constant gain γ, which is 1 in most papers:
//
//   standard   a_t = W h_{t−1} + V x_t + b    h_t = φ(a_t)
//   outside    a_t = V x_t + b                h_t = W h_{t−1} + φ(a_t)      (Henaff, Szlam & LeCun 2016)
//   residual   a_t = W h_{t−1} + V x_t + b    h_t = h_{t−1} + ε φ(a_t)      (Chang, Chen, Haber & Chi 2019, with W = A
//                                                                           − Aᵀ − γI)
//
//   backward   g_t = ∂L/∂h_t, ∂L/∂(V x_t + b) = δ_t, clipped
//     standard   δ_t = φ'(a_t)·g_t        ∂L/∂h_{t−1} = Wᵀδ_t           dW = Σ δ_t h_{t−1}ᵀ
//     outside    δ_t = φ'(a_t)·g_t        ∂L/∂h_{t−1} = Wᵀg_t           dW = Σ g_t h_{t−1}ᵀ, with g_t clipped
//     residual   δ_t = φ'(a_t)·εg_t       ∂L/∂h_{t−1} = g_t + Wᵀδ_t     dW = Σ δ_t h_{t−1}ᵀ
//
// Saved rows: a when φ's pullback needs it, φ(a), and h unless it is φ(a). Delta rows: δ, and g for `outside`.
#include <stiefel/plugin.hpp>

namespace {

using namespace stiefel;

template <class S> class Elman final : public Cell<S> {
 public:
  struct Options {
    ActivationOptions activation;
    std::string transition = "standard";
    double gain = 1, step = 0.01;
    void describe(Schema& s) {
      s.section("activation", activation,
                "the function φ, by its kind or with its own options; identity makes the transition linear");
      s.field("transition", transition,
              "h' = φ(W h + V x + b) (standard), W h + φ(V x + b) (outside), or h + step·φ(W h + V x + b) (residual)")
          .one_of({"standard", "outside", "residual"});
      s.field("gain", gain, "constant that multiplies φ's argument");
      s.field("step", step, "ε of `transition: residual`")
          .at_least(0)
          .only_if(transition == "residual", "`transition: residual`");
    }
  };

  Elman(const Options& options, CellContext context)
      : Cell<S>(context),
        n_(context.rows()),
        activation_(Activation<S>::make(options.activation, n_, context.complex)),
        outside_(options.transition == "outside"),
        residual_(options.transition == "residual"),
        gain_(S(options.gain)),
        step_(S(options.step)),
        value_row_(activation_->keeps_input() ? n_ : 0),
        output_row_(value_row_ + (outside_ || residual_ ? n_ : 0)) {}

  std::vector<MapSpec> maps() const override { return {{"", n_, n_, 0}}; }
  Index input_rows() const override { return n_; }
  Index saved_rows() const override { return output_row_ + n_; }
  Index delta_rows() const override { return outside_ ? 2 * n_ : n_; }
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
      const CMat<S> last = hidden(chunk.before(t));
      Mat<S> a = rows_of(saved, 0, n_), h = hidden(saved);
      if (!outside_) maps.add(0, 1, last, a, scratch);
      if (gain_ != 1) a *= gain_;
      activation_->forward(a, value(saved), theta);
      if (residual_) h = last + step_ * value(saved);
      if (!outside_) continue;
      h = value(saved);
      maps.add(0, 1, last, h, scratch);
    }
  }

  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S> theta, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    const Blocks<S> dtheta = sink.blocks();
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      chunk.prefetch(t - 2);
      const Mat<S> saved = chunk.at(t);
      Mat<S> delta = rows_of(chunk.step(chunk.delta, t), 0, n_), g = chunk.receive(t, doutput);
      if (outside_) clip(g, chunk.message_clip);
      if (residual_) delta = step_ * g;
      activation_->backward(input(saved), value(saved), residual_ ? delta : g, delta, theta, dtheta);
      if (gain_ != 1) delta *= gain_;
      clip(delta, chunk.message_clip);
      if (outside_) {
        Mat<S> message = rows_of(chunk.step(chunk.delta, t), n_, n_);
        message = g;
        maps.apply_adjoint(0, message, g, scratch);
        continue;
      }
      residual_ ? maps.add_adjoint(0, 1, delta, g, scratch) : maps.apply_adjoint(0, delta, g, scratch);
    }
    sink.map(0, 1, hidden(chunk.all_before()), rows_of(chunk.delta, outside_ ? n_ : 0, n_));
  }

 private:
  CMat<S> input(const Mat<S>& saved) const { return rows_of(saved, 0, value_row_); }
  Mat<S> value(const Mat<S>& saved) const { return rows_of(saved, value_row_, n_); }
  template <class P> P hidden(const P& saved) const { return rows_of(saved, output_row_, n_); }

  static void clip(Mat<S> delta, S bound) {
    if (bound > 0) delta = delta.unaryExpr([bound](S x) { return clipped(x, bound); });
  }

  Index n_;
  std::unique_ptr<Activation<S>> activation_;
  bool outside_, residual_;
  S gain_, step_;
  Index value_row_, output_row_;
};

}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<Elman>("elman", "simple recurrent cell h' = φ(W h + V x + b)"))
