/// A cell: one step of the recurrence and its pullback, over a chunk of time steps of one slice of the batch.
///
/// The engine writes V x_t + b, calls forward() chunk by chunk, reads the output rows, and calls backward() from the
/// last chunk to the first. A cell computes only the transition between two steps; the recurrent products go through
/// Maps, and the gradients of maps and blocks go into a GradientSink.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include <stiefel/activation.hpp>
#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>
#include <stiefel/parametrisation.hpp>
#include <stiefel/schema.hpp>

namespace stiefel {

/// A recurrent map that the cell needs. Maps with the same `input` act on the same operand. If neighbors with the same
/// `input` and `cols` are all dense, Maps::add of exactly all of them is one product.
struct MapSpec {
  std::string name;  ///< block names start with it: recurrent.<name>.<block>; a single map is named ""
  Index rows = 0, cols = 0;
  int input = 0;
};

/// What a cell is created for: `units` hidden units, i.e. 2·units real rows when `complex`, and sequences of at most
/// `steps` steps. The sizes that a cell returns do not depend on `steps`: a trained network also reads longer sequences.
struct CellContext {
  Index units = 0;
  bool complex = false;
  Index steps = 1;
  Index rows() const { return complex ? 2 * units : units; }
  /// Returns this context, or throws an Error that `plugin` has `what` and needs real maps; `or_else` is appended to
  /// its advice.
  STIEFEL_API CellContext real(const char* plugin, const char* what, const char* or_else = "") const;
};

/// Steps first … first + steps − 1 of one slice of `columns` sequences.
template <class S> struct Chunk {
  Index first = 0, steps = 0, columns = 0;
  /// Sequences come longest first: at step t of the chunk the first active[t] columns are active. Cells touch only
  /// these.
  const Index* active = nullptr;
  /// saved_rows × (steps + 1)·columns. Column block 0 belongs to the step before the chunk and holds the entering state
  /// in the state rows; block t + 1 belongs to step t: forward() finds V x_t + b in its first input_rows and leaves
  /// there what backward() needs, the state and the output.
  Mat<S> saved;
  /// For backward(), like dstate and dhidden; empty in evaluations. delta_rows × steps·columns; on entry zero where a
  /// sequence has ended, unspecified elsewhere. backward() leaves the gradient of V x_t + b in the first input_rows of
  /// the active columns.
  Mat<S> delta = {};
  /// state_rows × columns: in: gradient with respect to the leaving state; out: with respect to the entering state.
  Mat<S> dstate = {};
  /// output_rows × steps·columns for ∂L/∂h_t (the total derivative), or 0 columns if it is not recorded.
  Mat<S> dhidden = {};
  Index output_in_state = 0;  ///< Cell::output_in_state()
  /// Elementwise bound of δ_t, the gradient at the pre-activations; 0: none. This is train.message_clip;
  /// train.clip bounds the gradient of the parameters.
  S message_clip = 0;
  S bound() const { return message_clip > 0 ? message_clip : std::numeric_limits<S>::infinity(); }

  /// Saved numbers of the active columns of step t = 0 … steps − 1; another t throws Error (Exit::plugin).
  Mat<S> at(Index t) const { return columns_of(saved, t + 1, active[inside(t)]); }
  /// Saved numbers of the same columns at the previous step; for t = 0 the entering state, in the state rows.
  CMat<S> before(Index t) const { return columns_of(saved, t, active[inside(t)]); }
  /// Saved numbers of all steps, and of the steps before them: columns as in `delta`, for GradientSink::map.
  CMat<S> all() const { return saved.rightCols(steps * columns); }
  CMat<S> all_before() const { return saved.leftCols(steps * columns); }
  /// Prefetches the saved numbers of step t, which may be before the chunk: by the backward pass, they have
  /// usually left the cache.
  void prefetch(Index t) const {
    const Mat<S> step = columns_of(saved, t + 1, active[t < 0 ? 0 : t]);
    const auto* first = reinterpret_cast<const char*>(step.data());
    for (Index line = 0; line < step.cols() * step.outerStride() * Index(sizeof(S)); line += 64)
      __builtin_prefetch(first + line, 0, 2);
  }
  /// Active columns of step t of a panel with steps·columns columns (delta, dhidden, ∂L/∂output).
  template <class P> P step(const P& panel, Index t) const { return columns_of(panel, t, active[t]); }

  /// Begins step t of backward(): ∂L/∂state_t, state_rows × active[t], a part of `dstate`. Adds what the readout sends
  /// back to its output rows, and records them as ∂L/∂h_t. For cells whose output rows are among the state rows.
  Mat<S> receive(Index t, CMat<S> doutput) const {
    if (output_in_state < 0)
      throw Error("receive() needs the output rows among the state rows; add `doutput` in backward()", Exit::plugin);
    const Mat<S> gradient = columns_of(dstate, 0, active[t]);
    Mat<S> g = rows_of(gradient, output_in_state, dhidden.cols() > 0 ? dhidden.rows() : doutput.rows());
    if (doutput.cols() > 0) g += step(doutput, t);
    if (dhidden.cols() > 0) step(dhidden, t) = g;
    return gradient;
  }

 private:
  Index inside(Index t) const {
    if (t < 0 || t >= steps) detail::no_step(t, steps);
    return t;
  }
  template <class P> P columns_of(const P& panel, Index block, Index count) const {
    return P(panel.data() + block * columns * panel.outerStride(), panel.rows(), count, panel.outerStride());
  }
};

/// x clipped to ±bound; NaN stays NaN.
template <class S> S clipped(S x, S bound) {
  const S below = bound < x ? bound : x;
  return below < -bound ? -bound : below;
}

/// Products with the cell's maps, by their number in maps(); other numbers are undefined behavior. Thread-safe; no
/// allocation.
template <class S> class STIEFEL_API Maps {
 public:
  virtual ~Maps();
  /// Y = W X.
  virtual void apply(Index map, CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const = 0;
  /// Y += [W_first; …; W_{first+count−1}] X for maps of one operand, results stacked.
  virtual void add(Index first, Index count, CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const = 0;
  /// dX = Wᵀ dY.
  virtual void apply_adjoint(Index map, CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const = 0;
  /// dX += Σ W_kᵀ dY_k, the stacked counterpart of add().
  virtual void add_adjoint(Index first, Index count, CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const = 0;
};

/// Where backward() leaves gradients.
template <class S> class STIEFEL_API GradientSink {
 public:
  virtual ~GradientSink();
  /// Gradient of the `count` stacked maps from number `first` on (or of the one map), from operand columns X and result
  /// gradients dY of the whole chunk: dW += dY Xᵀ. Columns of sequences that have ended must be zero in dY.
  virtual void map(Index first, Index count, CMat<S> X, CMat<S> dY) = 0;
  /// This slice's sums for the cell's own blocks; count() is 0 if they are not needed.
  virtual Blocks<S> blocks() = 0;
};

template <class S> class STIEFEL_API Cell {
 public:
  explicit Cell(CellContext context) : context_(context) {}
  virtual ~Cell();
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  const CellContext& context() const { return context_; }

  virtual std::vector<MapSpec> maps() const = 0;
  virtual Index input_rows() const = 0;  ///< rows of V x + b
  virtual Index saved_rows() const = 0;  ///< kept per step and column, ≥ input_rows
  virtual Index delta_rows() const;      ///< default input_rows()
  virtual Index output_row() const = 0;  ///< first of the output rows within the saved rows
  virtual Index output_rows() const;     ///< default context().rows()
  virtual Index state_row() const;       ///< first of the state rows within the saved rows; default output_row()
  virtual Index state_rows() const;      ///< default output_rows(); h and c of an LSTM
  /// First of the output rows among the state rows; −1 if they are elsewhere.
  Index output_in_state() const {
    const Index offset = output_row() - state_row();
    return offset >= 0 && offset + output_rows() <= state_rows() ? offset : -1;
  }

  virtual std::vector<BlockSpec> blocks() const;  ///< parameters of the cell itself; default none
  virtual void initialise(Blocks<S> theta, Rng& rng) const;
  /// For `stiefel check` alone: values of the blocks at which gradients can be compared with differences. A cell writes them and returns
  /// true if the step has a kink, or bends too much, near what initialise() writes. Default: false, and check moves those a little.
  virtual bool test_point(Blocks<S> theta, Rng& rng) const;
  /// Adds to the initial bias b of V x + b (an LSTM's forget bias): input_rows numbers that hold `input.bias_init`, or
  /// none if `input.bias` is false. Default: nothing.
  virtual void initialise_bias(std::span<S> bias) const;
  /// Called after every optimizer step that moves a block of the cell: a projection, after which a second call changes
  /// nothing. Default: nothing.
  virtual void after_step(Blocks<S> theta) const;

  /// Number of scalars that one concurrent forward or backward of a chunk of `columns` sequences takes from its
  /// Scratch, excluding its products.
  virtual Index scratch(Index columns) const;
  virtual void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S> theta, Scratch<S>& scratch) const = 0;
  /// `doutput` is output_rows × steps·columns, or has 0 columns if nothing is read out in this chunk. Never writes to
  /// chunk.saved.
  virtual void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S> theta, GradientSink<S>& sink,
                        Scratch<S>& scratch) const = 0;

 private:
  CellContext context_;
};

}  // namespace stiefel
