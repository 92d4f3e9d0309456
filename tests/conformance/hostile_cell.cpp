// h_t = φ(W h_{t−1} + z_t), wrong in one way, as `fault` says.
//
//   derivative            backward drops φ′ at the first step
//   chunk                 backward drops φ′ at the first step of every chunk
//   allocation_forward, allocation_backward   allocates at every step
//   columns               backward passes over the columns after the sixteenth
//   late                  forward leaves out φ from step 40 on
//   input_rows            asks for one row of V x + b more than it has
//   constructor           cannot be made
//   random_start          draws initial values of a block of its own from std::random_device
//   steps                 saves more rows for longer sequences
//   race                  keeps its working memory in a member
//   clip                  clips δ after it has gone back through W
//   output_last           never writes the last of the output rows
//   output_scales         multiplies output rows that nobody has written
//   output_nan            leaves NaN in output rows
//   output_outside        has its output rows after all others
//   maps                  has two maps with one name
//   member                adds the last state of the pass before
//   bias                  writes to the bias although there is none
//   after                 reads the step after the last one
//   test_point            writes past the end of its block in test_point()
//   reflects              reflects numbers of a block of its own once at ±9 in after_step()
//   no_readout            backward does nothing for a chunk without doutput and dhidden
//   unrecorded            backward halves δ where dhidden has no columns
//   guard                 scales W h + z of all sequences where one of them is above 30
//   bias_sets             initialise_bias() sets the bias instead of adding to it
//   table                 halves its outputs beyond context().steps
//   zero_start            takes 0 for the state that enters a sequence
//   around_test_point     has no gradient of its own block, which only at the test point is 0
//   unset                 adds a member that is never written
//   fixed_start           has random initial values of its own that are the same for every seed
#include <cmath>
#include <random>
#include <stdexcept>

#include <stiefel/plugin.hpp>

namespace {
using namespace stiefel;

template <class S> class HostileCell final : public Cell<S> {
 public:
  struct Options {
    std::string fault = "derivative";
    bool relu = false;
    void describe(Schema& s) {
      s.field("fault", fault, "what is wrong");
      s.field("relu", relu, "φ = max(0, ·) instead of tanh");
    }
  };
  HostileCell(const Options& options, CellContext context)
      : Cell<S>(context), options_(options), n_(context.rows()), buffer_(n_, 100) {
    if (fault("constructor")) throw std::runtime_error("no cell today");
  }

  std::vector<MapSpec> maps() const override {
    const MapSpec W{fault("maps") ? "gate" : "", n_, n_, 0};
    return std::vector<MapSpec>(fault("maps") ? 2 : 1, W);
  }
  Index input_rows() const override { return fault("input_rows") ? n_ + 1 : n_; }
  Index saved_rows() const override { return input_rows() + n_ + (fault("steps") ? this->context().steps : 0); }
  std::vector<BlockSpec> blocks() const override {
    return fault("random_start") || fault("fixed_start") || fault("test_point") || fault("reflects") ||
                   fault("around_test_point")
               ? std::vector<BlockSpec>{{"unused", 9}}
               : std::vector<BlockSpec>();
  }
  void initialise(Blocks<S> theta, Rng& rng) const override {
    Rng own(1, "fixed");
    for (Index b = 0; b < theta.count(); ++b)
      for (S& x : theta[b])
        x = fault("fixed_start")    ? S(own.normal())
            : fault("reflects")     ? S(rng.uniform())
            : fault("random_start") ? S(std::random_device()())
                                    : S(0);
  }
  bool test_point(Blocks<S> theta, Rng&) const override {
    if (fault("test_point")) theta[0].data()[9] = 1;
    return fault("around_test_point");
  }
  void after_step(Blocks<S> theta) const override {
    if (!fault("reflects")) return;
    for (S& x : theta[0])
      if (std::abs(x) > 9) x = std::copysign(S(18), x) - x;
  }
  void initialise_bias(std::span<S> bias) const override {
    if (fault("bias")) bias[0] = 1;
    if (fault("bias_sets")) std::ranges::fill(bias, S(1));
  }
  Index output_row() const override {
    if (fault("output_outside")) return saved_rows();
    return fault("output_last") ? 1 : fault("output_scales") || fault("output_nan") ? input_rows() : 0;
  }
  Index state_row() const override { return 0; }

  void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S> theta, Scratch<S>& scratch) const override {
    for (Index t = 0; t < chunk.steps; ++t) {
      Mat<S> h = rows_of(chunk.at(fault("after") ? t + 1 : t), 0, n_);
      if (!begins(chunk, t)) maps.add(0, 1, rows_of(chunk.before(t), 0, n_), h, scratch);
      if (fault("around_test_point")) h.array() += theta[0][0] * theta[0][0];
      if (fault("unset")) h.array() += unset_;
      if (fault("member")) h.array() += kept_;
      if (const S largest = h.cwiseAbs().maxCoeff(); fault("guard") && largest > 30) h *= S(30) / largest;
      Mat<S> phi = fault("race") ? Mat<S>(buffer_.leftCols(h.cols())) : h;
      if (fault("late") && chunk.first + t >= 40)
        phi = h;
      else if (options_.relu)
        phi = h.cwiseMax(S(0));
      else
        phi = h.array().tanh();
      if (fault("allocation_forward"))
        h = Matrix<S>(phi) * S(1);
      else
        h = phi;
      if (fault("table") && chunk.first + t >= this->context().steps) h /= S(2);
      if (fault("member") && t == chunk.steps - 1) kept_ = S(0.01) * h(0, 0);
      if (fault("output_scales")) rows_of(chunk.at(t), n_, n_).array() *= h.array();
      if (fault("output_nan")) rows_of(chunk.at(t), n_, n_).setConstant(std::numeric_limits<S>::quiet_NaN());
    }
  }
  void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S>, GradientSink<S>& sink,
                Scratch<S>& scratch) const override {
    if (chunk.output_in_state < 0) return chunk.delta.setZero(), void();  // what forward() does is wrong already
    const bool recorded = chunk.dhidden.cols() > 0;
    if (fault("no_readout") && !recorded && doutput.cols() == 0) return chunk.delta.setZero(), void();
    for (Index t = chunk.steps - 1; t >= 0; --t) {
      const CMat<S> h = rows_of(chunk.at(t), 0, n_);
      Mat<S> delta = rows_of(chunk.step(chunk.delta, t), 0, n_), g = chunk.receive(t, doutput);
      if (fault("allocation_backward"))
        delta = Matrix<S>(g) * S(1);
      else
        delta = g;
      const bool dropped = t == 0 && (fault("chunk") || (fault("derivative") && chunk.first == 0));
      if (!dropped) {
        if (options_.relu)
          delta.array() *= (h.array() > 0).template cast<S>();
        else
          delta.array() *= 1 - h.array().square();
      }
      if (fault("unrecorded") && !recorded) delta /= S(2);
      if (fault("columns") && delta.cols() > 16) delta.rightCols(delta.cols() - 16).setZero();
      if (fault("clip")) maps.apply_adjoint(0, delta, g, scratch);
      if (chunk.message_clip > 0) delta = delta.cwiseMax(-chunk.message_clip).cwiseMin(chunk.message_clip);
      if (!fault("clip")) maps.apply_adjoint(0, delta, g, scratch);
      if (begins(chunk, t)) g.setZero();
    }
    const Index columns = begins(chunk, 0) ? chunk.delta.cols() - chunk.columns : chunk.delta.cols();
    sink.map(0, 1, rows_of(chunk.all_before(), 0, n_).rightCols(columns),
             rows_of(chunk.delta, 0, n_).rightCols(columns));
  }

 private:
  bool fault(const char* name) const { return options_.fault == name; }
  bool begins(const Chunk<S>& chunk, Index t) const { return fault("zero_start") && t == 0 && chunk.first == 0; }

  Options options_;
  Index n_;
  S unset_;
  mutable Matrix<S> buffer_;
  mutable S kept_ = 0;
};
}  // namespace

STIEFEL_PLUGIN("1.0", stiefel::cell<HostileCell>("hostile_cell", "plain cell that is wrong in a way to choose"))
