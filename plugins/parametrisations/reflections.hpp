// Householder vectors: their packed storage, and the factors of a given orthogonal matrix (Mhammedi et al. 2017,
// algorithm 2).
//
//   H(u) = I − 2uuᵀ/‖u‖². Column j of U (n × r, lower-trapezoidal) is (0_j; u), so θ holds n, n − 1, … numbers column
//     after column.
//   Q = H(U_0) H(U_1) … H(U_{n−2}) diag(1, …, 1, u₁)
#pragma once

#include <cmath>
#include <stiefel/error.hpp>
#include <stiefel/linear_algebra.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

/// Numbers of the first r columns.
inline Index trapezoid_size(Index n, Index r) { return n * r - r * (r - 1) / 2; }

/// Calls visit(j, first, length) for each of the r columns: entries first … first + length − 1 of θ are its rows j … n
/// − 1.
template <class F> void for_each_column(Index n, Index r, F visit) {
  for (Index j = 0, first = 0; j < r; first += n - j, ++j) visit(j, first, n - j);
}

template <class S> void unpack_trapezoid(std::span<const S> theta, Mat<S> U) {
  U.setZero();
  for_each_column(U.rows(), U.cols(), [&](Index j, Index first, Index length) {
    U.col(j).tail(length) = as_vector(theta).segment(first, length);
  });
}

/// dθ += the entries of dU that are stored.
template <class S> void add_trapezoid(std::span<S> dtheta, const Matrix<S>& dU) {
  for_each_column(dU.rows(), dU.cols(), [&](Index j, Index first, Index length) {
    as_vector(dtheta).segment(first, length) += dU.col(j).tail(length);
  });
}

/// Scales the columns of θ to length 1, except those of zeros; an entry has `parts` numbers.
template <class S> void normalise_columns(std::span<S> theta, Index n, Index r, Index parts = 1) {
  for_each_column(n, r, [&](Index, Index first, Index length) {
    auto column = as_vector(theta).segment(parts * first, parts * length);
    const double norm = column.template cast<double>().norm();
    if (norm > 0) column = (column.template cast<double>() / norm).template cast<S>();
  });
}

inline void demand_reflection(const std::string& plugin, const std::string& block, Index column, double length) {
  if (length == 0)
    throw Error(plugin + ": column " + std::to_string(column) + " of " + block +
                    " is zero and defines no reflection; lower the rate, or set `normalise_columns: true`",
                Exit::diverged);
}

struct Reflections {
  Matrix<double> U;  // n × (n − 1), columns of unit length
  double u1;
};

/// Householder QR of an orthogonal Q with a positive diagonal of R: each column x is reflected to +‖x‖e₁ by u = x −
/// ‖x‖e₁, whose first entry is computed without cancellation. A column that is already there is fixed by the reflection
/// in u = e₂.
inline Reflections reflections_of(Matrix<double> Q) {
  const Index n = Q.rows();
  Reflections result{Matrix<double>::Zero(n, n - 1), 1};
  for (Index j = 0; j + 1 < n; ++j) {
    const Index length = n - j;
    Vector<double> u = Q.col(j).tail(length);
    const double norm = u.norm(), below = u.tail(length - 1).squaredNorm();
    u[0] = u[0] > 0 ? -below / (u[0] + norm) : u[0] - norm;
    if (u.squaredNorm() == 0) u[1] = 1;
    u.normalize();
    add_product<double>(u, product(transposed(u), Q.bottomRows(length)), Q.bottomRows(length), -2);
    result.U.col(j).tail(length) = u;
  }
  result.u1 = Q(n - 1, n - 1) < 0 ? -1 : 1;
  return result;
}

}  // namespace stiefel
