/// A cell: one step of the recurrence and its pullback, over a chunk of time steps of one slice of the batch.
///
/// The engine writes V x_t + b, calls forward() chunk by chunk, reads the output rows, and calls backward() from the
/// last chunk to the first. Only what is between two steps happens here; the recurrent products go through Maps, and
/// the gradients of maps and blocks go into a GradientSink.
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

/// A recurrent map that the cell needs. Maps with the same `input` act on the same operand: the engine may fuse their
/// products.
struct MapSpec {
  std::string name;  ///< block names start with it: recurrent.<name>.<block>; a single map is named ""
  Index rows = 0, cols = 0;
  int input = 0;
};

/// What a cell is created for: `units` hidden units, i.e. 2·units real rows when `complex`.
struct CellContext {
  Index units = 0;
  bool complex = false;
  Index rows() const { return complex ? 2 * units : units; }
};

/// First number of a view; a view is a handle, so a constant Mat still gives access to writable numbers.
template <class P> typename P::Scalar* first_of(const P& panel) {
  return const_cast<typename P::Scalar*>(panel.data());
}

/// Steps first … first + steps − 1 of one slice of `columns` sequences.
template <class S> struct Chunk {
  Index first = 0, steps = 0, columns = 0;
  /// Sequences come longest first: at step t of the chunk the first active[t] columns are active. Cells touch only
  /// these.
  const Index* active = nullptr;
  /// saved_rows × (steps + 1)·columns. Column block 0 belongs to the step before the chunk and holds the entering state
  /// in the state rows; block t + 1 belongs to step t: forward() finds V x_t + b in its first input_rows and leaves
  /// there what backward() needs, the state and the output.
  Mat<S> saved{nullptr, 0, 0, Eigen::OuterStride<>(0)};
  /// delta_rows × steps·columns; on arrival zero where a sequence has ended and anything elsewhere. backward() leaves
  /// the gradient of V x_t + b in the first input_rows of the active columns.
  Mat<S> delta{nullptr, 0, 0, Eigen::OuterStride<>(0)};
  /// state_rows × columns: in: gradient with respect to the leaving state; out: with respect to the entering state.
  Mat<S> dstate{nullptr, 0, 0, Eigen::OuterStride<>(0)};
  /// output_rows × steps·columns for ∂L/∂h_t (the total derivative), or 0 columns if it is not recorded.
  Mat<S> dhidden{nullptr, 0, 0, Eigen::OuterStride<>(0)};
  /// Elementwise bound of the message δ_t that is passed back through time; 0: none.
  S message_clip = 0;
  S bound() const { return message_clip > 0 ? message_clip : std::numeric_limits<S>::infinity(); }

  /// Saved numbers of the active columns of step t, t = −1 … steps − 1 (at −1 those that are active at step 0).
  Mat<S> at(Index t) const {
    return mat(first_of(saved) + (t + 1) * columns * saved.outerStride(), saved.rows(), active[t < 0 ? 0 : t],
               saved.outerStride());
  }
  /// Prefetches the saved numbers of step t: the backward pass reads them from far memory.
  void prefetch(Index t) const {
    const Mat<S> step = at(t);
    const auto* first = reinterpret_cast<const char*>(step.data());
    for (Index line = 0; line < step.cols() * step.outerStride() * Index(sizeof(S)); line += 64)
      __builtin_prefetch(first + line, 0, 2);
  }
  /// Active columns of step t of a panel with steps·columns columns (delta, dhidden, ∂L/∂output).
  template <class P> P step(const P& panel, Index t) const {
    return P(first_of(panel) + t * columns * panel.outerStride(), panel.rows(), active[t],
             Eigen::OuterStride<>(panel.outerStride()));
  }
};

/// x clipped to ±bound; NaN stays NaN.
template <class S> S clipped(S x, S bound) {
  const S below = bound < x ? bound : x;
  return below < -bound ? -bound : below;
}

/// Rows first … first + count − 1 of a view.
template <class P> P rows_of(const P& panel, Index first, Index count) {
  return P(first_of(panel) + first, count, panel.cols(), Eigen::OuterStride<>(panel.outerStride()));
}

/// Products with the cell's maps, by their number in maps(). Thread-safe; no allocation.
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
  /// Gradient of map number `map` (or of `count` stacked ones) from operand columns X and result gradients dY of the
  /// whole chunk: dW += dY Xᵀ. Columns of sequences that have ended must be zero in dY.
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

  virtual std::vector<BlockSpec> blocks() const;  ///< parameters of the cell itself; default none
  virtual void initialise(Blocks<S> theta, Rng& rng) const;
  /// Initial values of the bias b of V x + b, on top of `input.bias_init` (an LSTM's forget bias). Default: nothing.
  virtual void initialise_bias(std::span<S> bias) const;

  /// Number of scalars that one concurrent forward or backward of that many columns takes from its Scratch, excluding
  /// its products.
  virtual Index scratch(Index columns) const;
  virtual void forward(Chunk<S>& chunk, const Maps<S>& maps, CBlocks<S> theta, Scratch<S>& scratch) const = 0;
  /// `doutput` is output_rows × steps·columns, or has 0 columns if nothing is read out in this chunk. Never writes to
  /// chunk.saved.
  virtual void backward(Chunk<S>& chunk, CMat<S> doutput, const Maps<S>& maps, CBlocks<S> theta, GradientSink<S>& sink,
                        Scratch<S>& scratch) const = 0;

  /// For gradient checks: smallest distance of a forward()ed chunk from a point without derivative. Default: infinity.
  virtual double kink_distance(const Chunk<S>& chunk, CBlocks<S> theta) const;
  virtual double flops(Index columns) const;  ///< of one step forward and back, excluding its products
  virtual void serialise(Archive& archive);

 private:
  CellContext context_;
};

}  // namespace stiefel
