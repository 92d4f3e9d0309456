// PackedProduct: packing, checks of shapes, and the call into the kernel of the SIMD target that the copy was laid out
// for.
#include <algorithm>
#include <new>

#include <stiefel/error.hpp>
#include <stiefel/product.hpp>

#include "sdk/kernel/product_kernel.hpp"
#include "sdk/require.hpp"

namespace stiefel {

namespace {
constexpr std::align_val_t alignment{128};  // two cache lines, and no less than any vector
}

template <class S> void PackedProduct<S>::Release::operator()(S* numbers) const {
  ::operator delete[](numbers, alignment);
}

template <class S> PackedProduct<S>::PackedProduct() = default;
template <class S> PackedProduct<S>::~PackedProduct() = default;
template <class S> PackedProduct<S>::PackedProduct(PackedProduct&&) noexcept = default;
template <class S> PackedProduct<S>& PackedProduct<S>::operator=(PackedProduct&&) noexcept = default;

template <class S> void PackedProduct<S>::reserve(Index rows, Index cols) {
  kernel_ = &product_kernel<S>();
  const Index lanes = kernel_->lanes;
  const Index size = (rows + lanes - 1) / lanes * lanes * cols;
  if (size > capacity_) {
    packed_.reset();
    capacity_ = rows_ = cols_ = 0;
    packed_.reset(static_cast<S*>(::operator new[](std::size_t(size) * sizeof(S), alignment)));
    capacity_ = size;
  }
  rows_ = rows;
  cols_ = cols;
}

/// Calls copy(first row, rows, height, numbers of the panel) for every panel.
template <class S, class Copy> void for_each_panel(S* packed, Index rows, Index cols, Index lanes, Copy copy) {
  for (Index row = 0; row < rows; row += 2 * lanes) {
    const Index left = std::min(2 * lanes, rows - row), height = left > lanes ? 2 * lanes : lanes;
    copy(row, left, height, packed + row * cols);
  }
}

template <class S> void PackedProduct<S>::pack(CMat<S> W) {
  reserve(W.rows(), W.cols());
  for_each_panel(packed_.get(), rows_, cols_, kernel_->lanes, [&](Index row, Index count, Index height, S* panel) {
    for (Index k = 0; k < cols_; ++k, panel += height) {
      std::fill(std::copy_n(W.data() + k * W.outerStride() + row, count, panel), panel + height, S(0));
    }
  });
}

template <class S> void PackedProduct<S>::pack_transposed(CMat<S> W) {
  reserve(W.cols(), W.rows());
  constexpr Index strip = 64 / sizeof(S);  // one cache line of a column of W
  for_each_panel(packed_.get(), rows_, cols_, kernel_->lanes, [&](Index row, Index count, Index height, S* panel) {
    for (Index first = 0; first < cols_; first += strip) {
      const Index end = std::min(first + strip, cols_);
      for (Index i = 0; i < height; ++i) {
        const S* column = i < count ? W.data() + (row + i) * W.outerStride() : nullptr;
        for (Index k = first; k < end; ++k) panel[k * height + i] = column ? column[k] : S(0);
      }
    }
  });
}

template <class S> void PackedProduct<S>::run(CMat<S> X, Mat<S> Y, bool accumulate, S sign) const {
  require(X.rows() == cols_ && Y.rows() == rows_ && X.cols() == Y.cols(),
          "a packed matrix of {} × {} times {} × {} cannot be written to {} × {}", rows_, cols_, X.rows(), X.cols(),
          Y.rows(), Y.cols());
  if (Y.size() == 0) return;
  kernel_->multiply({.w = packed_.get(),
                     .w_stride = 0,
                     .rows = rows_,
                     .depth = cols_,
                     .x = X.data(),
                     .x_stride = X.outerStride(),
                     .y = Y.data(),
                     .y_row = 1,
                     .y_stride = Y.outerStride(),
                     .columns = X.cols(),
                     .accumulate = accumulate,
                     .sign = sign});
}

template <class S> void PackedProduct<S>::multiply(CMat<S> X, Mat<S> Y) const { run(X, Y, false, S(1)); }
template <class S> void PackedProduct<S>::add(CMat<S> X, Mat<S> Y) const { run(X, Y, true, S(1)); }
template <class S> void PackedProduct<S>::subtract(CMat<S> X, Mat<S> Y) const { run(X, Y, true, S(-1)); }

template <class S> void add_outer(Given<CMat<S>> A, Given<CMat<S>> B, Mat<S> C) {
  require(A.cols() == B.cols() && C.rows() == A.rows() && C.cols() == B.rows(),
          "add_outer of {} × {} and {} × {} cannot be added to {} × {}", A.rows(), A.cols(), B.rows(), B.cols(),
          C.rows(), C.cols());
  if (C.size() == 0 || A.cols() == 0) return;
  constexpr Index few = 32;
  if (std::min(A.rows(), B.rows()) > few) {
    C.noalias() += A * B.transpose();
    return;
  }
  const bool tall = A.rows() >= B.rows();
  const CMat<S>&W = tall ? A : B, &X = tall ? B : A;
  product_kernel<S>().outer({.w = W.data(),
                             .w_stride = W.outerStride(),
                             .rows = W.rows(),
                             .depth = W.cols(),
                             .x = X.data(),
                             .x_stride = X.outerStride(),
                             .y = C.data(),
                             .y_row = tall ? 1 : C.outerStride(),
                             .y_stride = tall ? C.outerStride() : 1,
                             .columns = X.rows(),
                             .accumulate = true,
                             .sign = S(1)});
}

template void add_outer<float>(CMat<float>, CMat<float>, Mat<float>);
template void add_outer<double>(CMat<double>, CMat<double>, Mat<double>);
template class PackedProduct<float>;
template class PackedProduct<double>;

}  // namespace stiefel
