/// Blocks on the orthogonal and unitary manifolds as n × n matrices, and moves along these manifolds.
///
/// T is real for Manifold::orthogonal and complex for Manifold::unitary, whose blocks are 2n × n, Re over Im; its precision R need not
/// be that of the block.
#pragma once

#include <cmath>
#include <complex>
#include <type_traits>

#include <stiefel/linear_algebra.hpp>
#include <stiefel/parametrisation.hpp>

namespace stiefel::manifold {

template <class T> inline constexpr bool is_complex = bool(Eigen::NumTraits<T>::IsComplex);
template <class T> using RealOf = typename Eigen::NumTraits<T>::Real;

template <class T, class S> Matrix<T> load(std::span<const S> block, Index n) {
  const auto numbers = as_matrix(block, is_complex<T> ? 2 * n : n, n).template cast<RealOf<T>>();
  if constexpr (is_complex<T>) {
    Matrix<T> M(n, n);
    M.real() = numbers.topRows(n);
    M.imag() = numbers.bottomRows(n);
    return M;
  } else {
    return numbers;
  }
}

template <class T, class S> void store(const Matrix<T>& M, std::span<S> block) {
  const Index n = M.cols();
  auto numbers = as_matrix(block, is_complex<T> ? 2 * n : n, n);
  numbers.topRows(n) = M.real().template cast<S>();
  if constexpr (is_complex<T>) numbers.bottomRows(n) = M.imag().template cast<S>();
}

/// A = G Mᴴ − M Gᴴ: skew, and −A M is the direction of steepest descent at M for the gradient G.
template <class T> Matrix<T> tangent(const Matrix<T>& G, const Matrix<T>& M) {
  Matrix<T> P(M.rows(), M.cols());
  P.noalias() = G * M.adjoint();
  return P - P.adjoint();
}

/// The change −ηAX of M by the step M ← (I + η/2 A)⁻¹(I − η/2 A)M, with X = (I + η/2 A)⁻¹M: the rounding of X is multiplied by the step.
/// X is the fixed point of X ← M − η/2 AX, begun with M, where so few iterations reach the precision of T that they are cheaper than a
/// factorization.
template <class T> Matrix<T> cayley_change(Matrix<T> A, double eta, const Matrix<T>& M) {
  A *= RealOf<T>(eta / 2);
  const double contraction = A.norm(), enough = double(Eigen::NumTraits<RealOf<T>>::epsilon()) / 8;
  constexpr int most = 2;
  Matrix<T> X = M;
  if (std::pow(contraction, most + 2) <= enough) {
    Matrix<T> next(M.rows(), M.cols());
    for (int k = 0; std::pow(contraction, k + 2) > enough; ++k) {
      next.noalias() = M - A * X;
      X.swap(next);
    }
  } else {
    Matrix<T> factors = A;
    factors.diagonal().array() += T(1);
    solve(view(factors), view(X));
  }
  Matrix<T> change(M.rows(), M.cols());
  change.noalias() = RealOf<T>(-2) * A * X;
  return change;
}

/// M ← UVᴴ of M = U S Vᴴ, the nearest matrix of the manifold: by Newton–Schulz steps M(3I − MᴴM)/2, which square the defect, or, far away,
/// by the singular value decomposition. In double precision.
template <class T> void project(Matrix<T>& M) {
  const Index n = M.cols();
  Matrix<T> defect(n, n), product(n, n);
  const double enough = 1e-15 * double(n);
  for (int k = 0; k < 8; ++k) {
    defect.noalias() = M.adjoint() * M;
    defect.diagonal().array() -= T(1);
    const double size = defect.norm();
    if (!(size < 0.5)) break;
    if (size > enough) {
      product.noalias() = M * defect;
      M -= 0.5 * product;
    }
    if (size < 1e-7) return;  // its square is below the rounding of double
  }
  Matrix<T> U(n, n), Vh(n, n);
  Vector<double> s(n);
  singular_value_decomposition(view(M), view(U), {s.data(), std::size_t(n)}, view(Vh));
  M.noalias() = U * Vh;
}

/// Calls f(T()) with the T of the block's manifold.
template <class R, class F> void with_numbers_of(Manifold kind, F&& f) {
  if (kind == Manifold::unitary)
    f(std::complex<R>());
  else
    f(R());
}

}  // namespace stiefel::manifold
