// The compact WY form of a product of reflections (Mhammedi et al. 2017, eq. 12), formed in parallel and in double
// precision.
//
//   H(U_0) H(U_1) … H(U_{r−1}) = I − U T⁻¹ Uᵀ,   T = striu(UᵀU) + ½diag(UᵀU)
#pragma once

#include <stiefel/linear_algebra.hpp>
#include <stiefel/matrix.hpp>
#include <stiefel/parallel.hpp>

#include "reflections.hpp"

namespace stiefel {

/// Calls visit(first, end), in parallel, for blocks of the r columns of U: U is zero above row `first` there, and rows
/// first … end − 1, or to n − 1 for the last block, are zero right of column end − 1.
template <class F> void visit_blocks(Index r, F visit, bool from_last = false) {
  constexpr Index width = 64;
  const Index last = (r - 1) / width;
  in_parallel(last + 1, [&](Index i) {
    const Index first = width * (from_last ? last - i : i);
    visit(first, std::min(first + width, r));
  });
}

/// The same from the last block on: threads wait less for each other if the largest blocks come first.
template <class F> void visit_blocks_from_last(Index r, F visit) { visit_blocks(r, visit, true); }

/// T and P = T⁻¹Uᵀ of U, n × r.
struct CompactForm {
  Matrix<double> U, T, P;

  template <class S> CompactForm(const Matrix<S>& columns, const std::string& plugin, const std::string& block)
      : U(columns.rows(), columns.cols()), T(U.cols(), U.cols()), P(U.cols(), U.rows()) {
    const Index n = U.rows(), r = U.cols();
    visit_blocks(r, [&](Index first, Index end) {
      U.middleCols(first, end - first) = columns.middleCols(first, end - first).template cast<double>();
    });
    visit_blocks(r, [&](Index first, Index end) {
      multiply<double>(transposed(U.bottomLeftCorner(n - first, end)), U.block(first, first, n - first, end - first),
                       T.block(0, first, end, end - first));
    });
    T.diagonal() /= 2;
    for (Index j = 0; j < r; ++j) demand_reflection(plugin, block, j, T(j, j));
    visit_blocks_from_last(r, [&](Index first, Index end) {
      const Index rows = (end == r ? n : end) - first;
      auto part = P.block(0, first, end, rows);
      part = U.block(first, 0, rows, end).transpose();
      solve_triangular<double>(Triangle::upper, T.topLeftCorner(end, end), part);
      P.block(end, first, r - end, rows).setZero();
    });
  }

  Matrix<double> R() const {
    Matrix<double> R = U.transpose();
    solve_triangular(Triangle::upper, transposed(T), view(R));
    return R;
  }
};

}  // namespace stiefel
