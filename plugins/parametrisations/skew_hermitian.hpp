// Skew-symmetric and skew-Hermitian matrices A by their free real numbers, and the matrices that published recipes
// start from.
//
//   real     n(n − 1)/2 numbers: A_ij for i > j, A_ji = −A_ij
//   complex  n² numbers, an n × n table: Re A_ij at (i, j) and Im A_ij at (j, i) for i > j, Im A_jj at (j, j); A_ji =
//            −conj(A_ij)
//
// The table, the strict lower triangle, or the `bandwidth` diagonals of it next to the main one are read column after
// column, or row after row. Each number multiplies one element of the basis E_ij − E_ji, i(E_ij + E_ji), iE_jj of the
// Lie algebra, which Hyland & Rätsch (2017) number row after row.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>
#include <stiefel/parametrisation.hpp>
#include <stiefel/random.hpp>
#include <string>

#include "complex_form.hpp"

namespace stiefel {

enum class Order { columns, rows };
constexpr Index all_diagonals = std::numeric_limits<Index>::max();

template <class T> Index skew_size(Index n) { return is_complex<T> ? n * n : n * (n - 1) / 2; }

/// Calls visit(i, j, k) for place (i, j) of the table or of the triangle and number k of θ.
template <class T, class F> void for_each_coordinate(Index n, Order order, F visit, Index bandwidth = all_diagonals) {
  Index k = 0;
  for (Index slow = 0; slow < n; ++slow)
    for (Index fast = 0; fast < n; ++fast) {
      const Index i = order == Order::rows ? slow : fast, j = order == Order::rows ? fast : slow;
      if (is_complex<T> || (i > j && i - j <= bandwidth)) visit(i, j, k++);
    }
}

template <class T, class S> Matrix<T> skew_matrix(std::span<const S> theta, Index n, Order order = Order::columns,
                                                  Index bandwidth = all_diagonals) {
  Matrix<T> A = Matrix<T>::Zero(n, n);
  const auto set = [&](Index i, Index j, Index k) {
    const double x = double(theta[std::size_t(k)]);
    if constexpr (is_complex<T>)
      if (i <= j) {
        A(j, i) += T(0, x);
        if (i != j) A(i, j) += T(0, x);
        return;
      }
    A(i, j) += x;
    A(j, i) -= x;
  };
  for_each_coordinate<T>(n, order, set, bandwidth);
  return A;
}

/// dθ += ∂ Re tr(dAᴴ A(θ)) / ∂θ.
template <class T, class S> void add_skew_gradient(std::span<S> dtheta, const Matrix<T>& dA,
                                                   Order order = Order::columns, Index bandwidth = all_diagonals) {
  const auto add = [&](Index i, Index j, Index k) {
    S& sum = dtheta[std::size_t(k)];
    if constexpr (is_complex<T>) {
      if (i > j)
        sum += S(std::real(dA(i, j) - dA(j, i)));
      else
        sum += S(i == j ? std::imag(dA(j, j)) : std::imag(dA(i, j) + dA(j, i)));
    } else {
      sum += S(dA(i, j) - dA(j, i));
    }
  };
  for_each_coordinate<T>(dA.rows(), order, add, bandwidth);
}

/// θ at the start. `cayley`, `henaff`: blocks [0, s; −s, 0] along the diagonal, s = tan(t/2) with t ~ U(0, π/2)
/// (Helfrich et al. 2018) or s ~ U(−π, π) (Henaff et al. 2016), imaginary parts 0; `uniform`: every number U(±scale);
/// `zero`.
template <class T, class S> void initialise_skew(std::span<S> theta, Index n, Order order, const std::string& kind,
                                                 double scale, Rng& rng, Index bandwidth = all_diagonals) {
  if (kind == "uniform")
    for (S& x : theta) x = S(rng.uniform(-scale, scale));
  if (kind != "cayley" && kind != "henaff") return;
  const auto set = [&](Index i, Index j, Index k) {
    if (i != j + 1 || j % 2 != 0) return;
    const double s = kind == "cayley" ? std::tan(rng.uniform(0, std::numbers::pi / 2) / 2)
                                      : rng.uniform(-std::numbers::pi, std::numbers::pi);
    theta[std::size_t(k)] = S(-s);
  };
  for_each_coordinate<T>(n, order, set, bandwidth);
}

}  // namespace stiefel
