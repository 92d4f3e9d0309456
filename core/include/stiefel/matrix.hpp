/// Owned matrices, borrowed views, and parameters as named blocks.
///
/// Only views cross a library boundary, by value: an object that owns Eigen memory must be freed by the library that
/// allocated it. Everything is column-major; a column is one sequence at one time step.
#pragma once

#include <Eigen/Core>
#include <span>
#include <type_traits>

#include <stiefel/index.hpp>

namespace stiefel {

static_assert(std::is_same_v<Index, Eigen::Index>);

/// Owns its memory; for locals and members only.
template <class S> using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
template <class S> using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;

/// A writable view: rows × cols, column j starts at data() + j·outerStride().
template <class S> using Mat = Eigen::Map<Matrix<S>, Eigen::Unaligned, Eigen::OuterStride<>>;
/// A read-only view.
template <class S> using CMat = Eigen::Map<const Matrix<S>, Eigen::Unaligned, Eigen::OuterStride<>>;

template <class S> Mat<S> mat(S* data, Index rows, Index cols, Index stride) {
  return {data, rows, cols, Eigen::OuterStride<>(stride)};
}
template <class S> CMat<S> cmat(const S* data, Index rows, Index cols, Index stride) {
  return {data, rows, cols, Eigen::OuterStride<>(stride)};
}

/// View of a whole matrix, of a block of one, or of another view (anything with unit inner stride).
template <class D> auto view(Eigen::MatrixBase<D>& m) {
  return mat(m.derived().data(), m.rows(), m.cols(), m.derived().outerStride());
}
template <class D> auto view(Eigen::MatrixBase<D>&& m) {
  return mat(m.derived().data(), m.rows(), m.cols(), m.derived().outerStride());
}
template <class D> auto cview(const Eigen::MatrixBase<D>& m) {
  return cmat(m.derived().data(), m.rows(), m.cols(), m.derived().outerStride());
}

/// A block's numbers as a rows × cols matrix, by columns.
template <class S> Mat<S> as_matrix(std::span<S> block, Index rows, Index cols) requires(!std::is_const_v<S>) {
  return mat(block.data(), rows, cols, rows);
}
template <class S> CMat<S> as_matrix(std::span<const S> block, Index rows, Index cols) {
  return cmat(block.data(), rows, cols, rows);
}

template <class S> auto as_vector(std::span<S> block) {
  return Eigen::Map<Vector<S>>(block.data(), Index(block.size()));
}
template <class S> auto as_vector(std::span<const S> block) {
  return Eigen::Map<const Vector<S>>(block.data(), Index(block.size()));
}

/// The parameters of one plugin object, block after block in the order of its blocks(); theta[i] is a std::span<S>.
template <class S> class Blocks {
 public:
  Blocks() = default;
  /// `offsets` holds count + 1 numbers.
  Blocks(S* data, const Index* offsets, Index count) : data_(data), offsets_(offsets), count_(count) {}
  template <class T>
  requires std::is_same_v<const T, S> Blocks(const Blocks<T>& other)
      : data_(other.data()), offsets_(other.offsets()), count_(other.count()) {}

  std::span<S> operator[](Index i) const { return {data_ + offsets_[i], std::size_t(offsets_[i + 1] - offsets_[i])}; }
  Index count() const { return count_; }
  Index size() const { return count_ ? offsets_[count_] - offsets_[0] : 0; }
  S* data() const { return data_; }
  const Index* offsets() const { return offsets_; }

 private:
  S* data_ = nullptr;
  const Index* offsets_ = nullptr;
  Index count_ = 0;
};
template <class S> using CBlocks = Blocks<const S>;

/// Working memory of one concurrent call: `take` returns the next scalars, uninitialised, until the object that created
/// it is reset.
template <class S> class Scratch {
 public:
  explicit Scratch(std::span<S> memory) : memory_(memory) {}
  /// rows × cols view; asking for more than was declared by scratch() is a bug and throws.
  Mat<S> take(Index rows, Index cols);
  Index used() const { return used_; }
  void release(Index mark) { used_ = mark; }

 private:
  std::span<S> memory_;
  Index used_ = 0;
};

}  // namespace stiefel

#include <stiefel/error.hpp>

namespace stiefel {
template <class S> Mat<S> Scratch<S>::take(Index rows, Index cols) {
  STIEFEL_ASSERT(used_ + rows * cols <= Index(memory_.size()));
  S* first = memory_.data() + used_;
  used_ += rows * cols;
  return mat(first, rows, cols, rows);
}
}  // namespace stiefel
