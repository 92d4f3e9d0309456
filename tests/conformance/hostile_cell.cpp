// h_t = tanh(W h_{t−1} + z_t) whose backward pass drops the derivative of tanh at the first step of every chunk.
#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class HostileCell final : public Cell<S> {
 public:
  struct Options {
    void describe(Schema&) {}
  };
  HostileCell(const Options&, CellContext context) : Cell<S>(context), n_(context.rows()) {}

  std::vector<MapSpec> maps() const override { return {{"", n_, n_, 0}}; }
  Index input_rows() const override { return n_; }
  Index saved_rows() const override { return n_; }
  Index output_row() const override { return 0; }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S>, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> h = chunk.at(t);
      maps.add(0, 1, cview(chunk.at(t - 1).leftCols(h.cols())), h, scratch);
      h = h.array().tanh();
    }
  }
  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S>, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      const Mat<S> h = chunk.at(t);
      Mat<S> delta = chunk.step(chunk.delta, t), g = view(chunk.dstate.leftCols(h.cols()));
      if (doutput.cols() > 0) g += chunk.step(doutput, t);
      if (chunk.dhidden.cols() > 0) chunk.step(chunk.dhidden, t) = g;
      delta = g;
      if (t > 0) delta.array() *= 1 - h.array().square();
      if (chunk.message_clip > 0) delta = delta.cwiseMax(-chunk.message_clip).cwiseMin(chunk.message_clip);
      maps.apply_adjoint(0, cview(delta), g, scratch);
    }
    sink.map(0, 1, cview(chunk.saved.leftCols(chunk.steps * chunk.columns)), cview(chunk.delta));
  }

 private:
  Index n_;
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<HostileCell>("hostile_cell", "plain cell with a wrong gradient"))
