/// Owned matrices, borrowed views, and parameters as named blocks.
///
/// Only views cross a library boundary, by value: an object that owns Eigen memory must be freed by the library that
/// allocated it. Everything is column-major; a column is one sequence at one time step.
#pragma once

#include <concepts>
#include <Eigen/Core>
#include <span>
#include <type_traits>

#include <stiefel/export.hpp>
#include <stiefel/index.hpp>

namespace stiefel {

static_assert(std::is_same_v<Index, Eigen::Index>,
              "stiefel needs Eigen's own index type: remove -DEIGEN_DEFAULT_DENSE_INDEX_TYPE");

/// Owns its memory; for locals and members only.
template <class S> using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
template <class S> using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;
static_assert(!Matrix<float>::IsRowMajor, "stiefel's matrices are column-major: remove -DEIGEN_DEFAULT_TO_ROW_MAJOR");

namespace detail {
template <class D, class S>
concept Columns = std::same_as<typename D::Scalar, S> && bool(D::Flags& Eigen::DirectAccessBit) && !D::IsRowMajor &&
                  int(D::InnerStrideAtCompileTime) == 1;
template <class D, class S>
concept WritableColumns = Columns<D, S> && bool(D::Flags& Eigen::LvalueBit);
template <class D>
concept Owner = std::is_base_of_v<Eigen::PlainObjectBase<D>, D>;

[[noreturn]] STIEFEL_API void scratch_used_up(Index rows, Index cols, Index left);
[[noreturn]] STIEFEL_API void no_block(Index block, Index count);
[[noreturn]] STIEFEL_API void no_step(Index step, Index steps);
[[noreturn]] STIEFEL_API void block_too_small(Index rows, Index cols, Index size);
}  // namespace detail

/// A writable view: rows × cols, column j starts at data() + j·outerStride(). Assignment copies numbers from a matrix
/// of the same size, which only Debug builds check. Matrices, their columns and blocks convert to it where it is an
/// argument; `view` does the same where S has to be deduced.
template <class S> class Mat : public Eigen::Map<Matrix<S>, Eigen::Unaligned, Eigen::OuterStride<>> {
 public:
  using Base = Eigen::Map<Matrix<S>, Eigen::Unaligned, Eigen::OuterStride<>>;
  Mat() : Mat(nullptr, 0, 0, 0) {}
  Mat(S* data, Index rows, Index cols, Index stride) : Base(data, rows, cols, Eigen::OuterStride<>(stride)) {}
  template <detail::WritableColumns<S> D> Mat(Eigen::MatrixBase<D>& m)
      : Mat(m.derived().data(), m.rows(), m.cols(), m.derived().outerStride()) {}
  template <detail::WritableColumns<S> D>
  requires(!detail::Owner<D>) Mat(Eigen::MatrixBase<D>&& m) : Mat(m) {}
  Mat(const Mat&) = default;

  using Base::operator=;
  Mat& operator=(const Mat& other) {
    Base::operator=(other);
    return *this;
  }
  S* data() const { return this->m_data; }
};

/// A read-only view. Everything that has its numbers in columns converts to it: matrices, blocks, other views.
template <class S> class CMat : public Eigen::Map<const Matrix<S>, Eigen::Unaligned, Eigen::OuterStride<>> {
 public:
  using Base = Eigen::Map<const Matrix<S>, Eigen::Unaligned, Eigen::OuterStride<>>;
  CMat() : CMat(nullptr, 0, 0, 0) {}
  CMat(const S* data, Index rows, Index cols, Index stride) : Base(data, rows, cols, Eigen::OuterStride<>(stride)) {}
  template <detail::Columns<S> D> CMat(const Eigen::MatrixBase<D>& m)
      : CMat(m.derived().data(), m.rows(), m.cols(), m.derived().outerStride()) {}
};

/// For parameters that take whatever converts to T while another argument decides the scalar.
template <class T> using Given = std::type_identity_t<T>;

template <class S> Mat<S> mat(S* data, Index rows, Index cols, Index stride) { return {data, rows, cols, stride}; }
template <class S> CMat<S> cmat(const S* data, Index rows, Index cols, Index stride) {
  return {data, rows, cols, stride};
}

/// View of a whole matrix, of a block of one, or of another view (anything with unit inner stride).
template <class D> Mat<typename D::Scalar> view(Eigen::MatrixBase<D>& m) { return m; }
template <class D> Mat<typename D::Scalar> view(Eigen::MatrixBase<D>&& m) { return m; }

/// Rows first … first + count − 1 of a view.
template <class P> P rows_of(const P& panel, Index first, Index count) {
  return P(panel.data() + first, count, panel.cols(), panel.outerStride());
}

/// A block's first rows·cols numbers as a matrix, by columns; throws an Error (Exit::plugin) if it has fewer.
template <class S> Mat<S> as_matrix(std::span<S> block, Index rows, Index cols) requires(!std::is_const_v<S>) {
  if (rows * cols > Index(block.size())) detail::block_too_small(rows, cols, Index(block.size()));
  return mat(block.data(), rows, cols, rows);
}
template <class S> CMat<S> as_matrix(std::span<const S> block, Index rows, Index cols) {
  if (rows * cols > Index(block.size())) detail::block_too_small(rows, cols, Index(block.size()));
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
  /// `offsets` holds count + 1 numbers; `gap` numbers lie between two blocks.
  Blocks(S* data, const Index* offsets, Index count, Index gap = 0)
      : data_(data), offsets_(offsets), count_(count), gap_(gap) {}
  template <class T>
  requires std::is_same_v<const T, S> Blocks(const Blocks<T>& other)
      : data_(other.data()), offsets_(other.offsets()), count_(other.count()), gap_(other.gap()) {}

  /// Throws an Error (Exit::plugin) if there is no block i.
  std::span<S> operator[](Index i) const {
    if (i < 0 || i >= count_) detail::no_block(i, count_);
    return {data_ + offsets_[i] + i * gap_, std::size_t(offsets_[i + 1] - offsets_[i])};
  }
  Index count() const { return count_; }
  Index size() const { return count_ ? offsets_[count_] - offsets_[0] : 0; }
  S* data() const { return data_; }
  const Index* offsets() const { return offsets_; }
  Index gap() const { return gap_; }

 private:
  S* data_ = nullptr;
  const Index* offsets_ = nullptr;
  Index count_ = 0, gap_ = 0;
};
template <class S> using CBlocks = Blocks<const S>;

/// Working memory of one call: `take` returns the next scalars, uninitialized, which are valid until the call ends, and
/// `release(mark)` gives back what was taken since used() was `mark`.
template <class S> class Scratch {
 public:
  explicit Scratch(std::span<S> memory) : memory_(memory) {}
  /// rows × cols view. Taking more than scratch() declares throws Error (Exit::plugin) in `stiefel check`; in a run,
  /// there may be memory of the products behind it.
  Mat<S> take(Index rows, Index cols) {
    const Index left = Index(memory_.size()) - used_;
    if (rows * cols > left) detail::scratch_used_up(rows, cols, left);
    used_ += rows * cols;
    return mat(memory_.data() + used_ - rows * cols, rows, cols, rows);
  }
  Index used() const { return used_; }
  void release(Index mark) { used_ = mark; }

 private:
  std::span<S> memory_;
  Index used_ = 0;
};

}  // namespace stiefel
