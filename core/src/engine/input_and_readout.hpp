// The linear layers around the recurrence: V x + b before it and o = Y h + c after it. V is rows × d, Y is k × r.
#pragma once

#include <stiefel/cell.hpp>
#include <stiefel/initialiser.hpp>
#include <stiefel/product.hpp>
#include <stiefel/task.hpp>

#include "config/experiment.hpp"
#include "engine/parameters.hpp"
#include "engine/slices.hpp"

namespace stiefel {

/// Steps first … first + steps − 1 of a slice of a batch. Column t·columns + c is step t of the sequence in column c.
/// With `reversed`, every sequence is read from its end.
template <class S> struct Window {
  const Batch<S>& batch;
  const Slice& slice;
  Index first, steps;
  bool reversed = false;
  Index columns() const { return slice.columns(); }
  bool alive(Index t, Index c) const { return slice.active[first + t] > c; }
  /// Step of the sequence in column c.
  Index step(Index t, Index c) const { return reversed ? slice.lengths[c] - 1 - first - t : first + t; }
};

/// Computes V x + b for dense inputs or for symbols, and b alone if there is no input. Symbols are looked up in a table
/// of V + b, or of V E + b with an embedding.
template <class S> class InputLayer {
 public:
  InputLayer(const InputOptions& options, InputKind kind, Index size, Index rows);

  std::vector<BlockSpec> blocks() const;
  void initialise(Blocks<S> theta, Rng& rng) const;
  std::span<S> bias(Blocks<S> theta) const;
  void refresh(CBlocks<S> theta);

  Index accumulator() const { return rows_ * (width() + 1); }
  /// Writes V x + b into `target` (rows × steps·columns); `panel` has panel(steps·columns) numbers.
  void forward(const Window<S>& window, Mat<S> target, std::span<S> panel) const;
  /// sum += gradient, from `delta` (rows × steps·columns).
  void accumulate(const Window<S>& window, CMat<S> delta, std::span<S> sum, std::span<S> panel) const;
  /// The same two functions for dense inputs x with a row of ones below them, (d + 1) × any number of columns.
  void forward(CMat<S> x, Mat<S> target) const { packed_.multiply(x, target); }
  void accumulate(CMat<S> x, CMat<S> delta, std::span<S> sum) const {
    add_outer(delta, x, mat(sum.data(), rows_, size_ + 1, rows_));
  }
  /// dx = Vᵀ δ, after refresh_adjoint().
  void backward(CMat<S> delta, Mat<S> dx) const { adjoint_.multiply(delta, dx); }
  void refresh_adjoint(CBlocks<S> theta) { adjoint_.pack_transposed(as_matrix(theta[0], rows_, size_)); }
  void finish(CBlocks<S> theta, std::span<const S> sum, Blocks<S> dtheta) const;
  Index panel(Index columns) const { return kind_ == InputKind::dense ? (size_ + 1) * columns : 0; }

 private:
  Index width() const { return kind_ == InputKind::none ? 0 : size_; }
  Index depth() const { return options_.embedding_size > 0 ? options_.embedding_size : width(); }
  Index symbol(const Window<S>& window, Index t, Index c) const;
  CMat<S> gather(const Window<S>& window, std::span<S> panel) const;

  InputOptions options_;
  InputKind kind_;
  Index size_, rows_;
  Matrix<S> table_;          // dense: [V b]; symbols: column j is V e_j + b, the last column is b
  PackedProduct<S> packed_;  // of a dense table
  PackedProduct<S> adjoint_;
};

/// o = Y h + c, where h are all output rows of the cell or, with `rows: real`, the real half of them.
template <class S> class Readout {
 public:
  Readout(const ReadoutOptions& options, Index output_size, Index output_rows, bool complex);

  Index rows() const { return rows_; }
  Index size() const { return size_; }
  std::vector<BlockSpec> blocks() const;
  void initialise(Blocks<S> theta, Rng& rng) const;
  void refresh(CBlocks<S> theta);
  void forward(CBlocks<S> theta, CMat<S> h, Mat<S> o) const;
  /// sum += gradient; the sum has the layout of the blocks.
  void accumulate(CMat<S> h, CMat<S> d_o, std::span<S> sum) const;
  void backward(CMat<S> d_o, Mat<S> dh) const;

 private:
  ReadoutOptions options_;
  Index size_, rows_;
  PackedProduct<S> Y_, Y_adjoint_;
};

}  // namespace stiefel
