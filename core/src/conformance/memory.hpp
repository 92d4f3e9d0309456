// Memory that detects writes where there should be none: numbers with sentinels before, after and between the columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <stiefel/matrix.hpp>
#include <stiefel/random.hpp>

namespace stiefel::conformance {

/// Finite, so that a product with zero stays zero; exact in both scalars.
inline constexpr double sentinel = -1234567.;

template <class S> class Guarded {
 public:
  explicit Guarded(Index size, S fill = 0) : memory_(std::size_t(size + 2 * margin), S(sentinel)), size_(size) {
    std::fill_n(memory_.begin() + margin, size, fill);
  }
  S* data() { return memory_.data() + margin; }
  const S* data() const { return memory_.data() + margin; }
  Index size() const { return size_; }
  std::span<S> span() { return {data(), std::size_t(size_)}; }
  std::span<const S> span() const { return {data(), std::size_t(size_)}; }
  bool intact() const {
    const auto kept = [](S x) { return x == S(sentinel); };
    return std::all_of(memory_.begin(), memory_.begin() + margin, kept) &&
           std::all_of(memory_.end() - margin, memory_.end(), kept);
  }

 private:
  static constexpr Index margin = 64;
  std::vector<S> memory_;
  Index size_;
};

/// A matrix whose columns do not touch each other.
template <class S> class Panel {
 public:
  Panel(Index rows, Index cols, S fill = 0) : memory_((rows + gap) * cols, S(sentinel)), rows_(rows), cols_(cols) {
    whole().setConstant(fill);
  }
  template <class D> explicit Panel(const Eigen::MatrixBase<D>& values) : Panel(values.rows(), values.cols()) {
    whole() = values.template cast<S>();
  }

  Mat<S> whole() { return mat(memory_.data(), rows_, cols_, rows_ + gap); }
  CMat<S> read() const { return cmat(memory_.data(), rows_, cols_, rows_ + gap); }
  Mat<S> columns(Index first, Index count) {
    return mat(memory_.data() + first * (rows_ + gap), rows_, count, rows_ + gap);
  }
  CMat<S> read(Index first, Index count) const {
    return cmat(memory_.data() + first * (rows_ + gap), rows_, count, rows_ + gap);
  }
  bool intact() const {
    const auto gaps = cmat(memory_.data() + rows_, gap, cols_, rows_ + gap);
    return memory_.intact() && (gaps.array() == S(sentinel)).all();
  }

 private:
  static constexpr Index gap = 3;
  Guarded<S> memory_;
  Index rows_, cols_;
};

/// Independent normal entries, rounded to 1/4096: exact in both scalars, and so are their simple combinations.
inline Matrix<double> random_matrix(Rng& rng, Index rows, Index cols, double scale = 1) {
  Matrix<double> m(rows, cols);
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < rows; ++i) m(i, j) = std::round(4096 * scale * rng.normal()) / 4096;
  return m;
}

}  // namespace stiefel::conformance
