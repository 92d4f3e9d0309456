/// Blocks on the orthogonal and unitary manifolds as n × n matrices, and moves along these manifolds, for optimizers
/// (Tagare 2011; Wisdom, Powers, Hershey, Le Roux & Atlas 2016).
///
/// T is real for Manifold::orthogonal and complex for Manifold::unitary, whose blocks are 2n × n, Re over Im; its
/// precision R need not be that of the block. These functions are thread-safe; they allocate.
#pragma once

#include <complex>
#include <span>
#include <type_traits>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>
#include <stiefel/parametrisation.hpp>

namespace stiefel::manifold {

template <class T> inline constexpr bool is_complex = bool(Eigen::NumTraits<T>::IsComplex);
template <class T> using RealOf = typename Eigen::NumTraits<T>::Real;

/// The block itself where its numbers are of type T, otherwise a copy.
template <class T, class S> auto load(std::span<const S> block, Index n) {
  if constexpr (std::is_same_v<T, S>) {
    return as_matrix(block, n, n);
  } else {
    const auto numbers = as_matrix(block, is_complex<T> ? 2 * n : n, n).template cast<RealOf<T>>();
    Matrix<T> M(n, n);
    M.real() = numbers.topRows(n);
    if constexpr (is_complex<T>) M.imag() = numbers.bottomRows(n);
    return M;
  }
}

/// M into the block.
template <class T, class S> void store(const Matrix<T>& M, std::span<S> block) {
  const Index n = M.cols();
  auto numbers = as_matrix(block, is_complex<T> ? 2 * n : n, n);
  numbers.topRows(n) = M.real().template cast<S>();
  if constexpr (is_complex<T>) numbers.bottomRows(n) = M.imag().template cast<S>();
}

/// A = G Mᴴ − M Gᴴ: skew, and −A M is the direction of steepest descent at M for the gradient G, ∂L/∂Re M + i ∂L/∂Im M.
template <class T> STIEFEL_API Matrix<T> tangent(CMat<T> G, CMat<T> M);

/// The change −ηAX of M by the step M ← (I + η/2 A)⁻¹(I − η/2 A)M with a skew A, where X = (I + η/2 A)⁻¹M: the rounding
/// of X is multiplied by the step. To first order the loss changes by −η/2 ‖A‖².
template <class T> STIEFEL_API Matrix<T> cayley_change(Matrix<T> A, double eta, CMat<T> M);

/// M ← UVᴴ of M = U S Vᴴ, the closest matrix of the manifold. In double precision.
template <class T> STIEFEL_API void project(Matrix<T>& M);

/// Calls f(T()) with the T of the block's manifold.
template <class R, class F> void with_numbers_of(Manifold kind, F&& f) {
  if (kind == Manifold::unitary)
    f(std::complex<R>());
  else
    f(R());
}

}  // namespace stiefel::manifold
