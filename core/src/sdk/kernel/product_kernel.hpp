/// The products' inner part, once per SIMD target, behind a table of function pointers.
///
/// Layout of a packed matrix with vectors of `lanes` numbers: the rows are cut into vectors, two vectors make a panel,
/// and a panel stores its rows of column 0, then of column 1, … An odd vector at the end makes a panel of half the
/// height. Missing rows are zero.
#pragma once

#include <stiefel/matrix.hpp>

namespace stiefel {

/// Y = sign·W·X, or Y + sign·W·X if `accumulate`. W is packed and X by columns, or W is plain and X is given as B = Xᵀ
/// by columns.
template <class S> struct ProductCall {
  const S* w;
  Index w_stride;  // of a plain W
  Index rows, depth;
  const S* x;
  Index x_stride;
  S* y;
  Index y_row, y_stride;  // distance of two rows: 1, but for a plain W; and of two columns
  Index columns;
  bool accumulate;
  S sign;
};

template <class S> struct ProductKernel {
  Index lanes;
  void (*multiply)(const ProductCall<S>&);  // packed
  void (*outer)(const ProductCall<S>&);     // plain
};

/// The kernel of the target chosen at run time.
template <class S> const ProductKernel<S>& product_kernel();

}  // namespace stiefel
