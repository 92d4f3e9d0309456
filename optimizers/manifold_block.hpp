/// Blocks on the orthogonal and unitary manifolds as n × n matrices in double precision, and moves along these manifolds.
///
/// T is double for Manifold::orthogonal and std::complex<double> for Manifold::unitary, whose blocks are 2n × n, Re over Im.
#pragma once

#include <complex>
#include <type_traits>

#include <stiefel/linear_algebra.hpp>
#include <stiefel/parametrisation.hpp>

namespace stiefel::manifold {

template <class T> inline constexpr bool is_complex = std::is_same_v<T, std::complex<double>>;

template <class T, class S> Matrix<T> load(std::span<const S> block, Index n) {
  const auto numbers = as_matrix(block, is_complex<T> ? 2 * n : n, n).template cast<double>();
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

/// M ← (I + η/2 A)⁻¹(I − η/2 A)M with one factorisation, as 2(I + η/2 A)⁻¹M − M.
template <class T> void cayley_step(Matrix<T> A, double eta, Matrix<T>& M) {
  A *= eta / 2;
  A.diagonal().array() += T(1);
  Matrix<T> solution = M;
  solve(view(A), view(solution));
  M = 2 * solution - M;
}

/// M ← UVᴴ of M = U S Vᴴ, the nearest matrix of the manifold: by Newton–Schulz steps M(3I − MᴴM)/2, which square the defect, or, far away,
/// by the singular value decomposition.
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
template <class F> void with_numbers_of(Manifold kind, F&& f) {
  if (kind == Manifold::unitary)
    f(std::complex<double>());
  else
    f(double());
}

}  // namespace stiefel::manifold
