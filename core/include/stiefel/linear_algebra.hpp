/// Factorisations by LAPACK, real and complex, compiled once in the runtime.
///
/// Products need no function: Eigen's `A * B` of large matrices calls BLAS in the runtime and in plugins alike
/// (`.noalias() =` saves a copy). All functions throw Error (Exit::diverged) on NaN or Inf and when LAPACK fails; they
/// allocate; they are thread-safe.
#pragma once

#include <complex>
#include <span>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

/// T is double or std::complex<double> everywhere, and for solve also float or std::complex<float>; matrices that are
/// overwritten are passed as `Mat`.

/// A ← A⁻¹, n × n (getrf, getri); throws when A is singular.
template <class T> STIEFEL_API void invert(Mat<T> A);

/// B ← A⁻¹B, A: n × n, overwritten, B: n × any (gesv); throws when A is singular.
template <class T> STIEFEL_API void solve(Mat<T> A, Mat<T> B);

/// A ← Q of A = QR with a positive diagonal of R, m × n with m ≥ n: of a Gaussian A, Q is Haar-distributed (geqrf,
/// orgqr).
template <class T> STIEFEL_API void orthonormalise(Mat<T> A);

/// A = V diag(λ) Vᴴ, n × n Hermitian, given by its lower triangle; A ← V, λ₁ ≤ λ₂ ≤ … (syevd, heevd).
template <class T> STIEFEL_API void hermitian_eigen(Mat<T> A, std::span<double> values);
/// The same without V; A is overwritten.
template <class T> STIEFEL_API void hermitian_eigenvalues(Mat<T> A, std::span<double> values);

/// A = U diag(s) Vᴴ, k = min(m, n), s₁ ≥ s₂ ≥ …; A: m × n, overwritten, U: m × k, Vh: k × n (gesdd).
template <class T> STIEFEL_API void singular_value_decomposition(Mat<T> A, Mat<T> U, std::span<double> s, Mat<T> Vh);
/// The min(m, n) singular values alone; A is overwritten.
template <class T> STIEFEL_API void singular_values(Mat<T> A, std::span<double> s);

/// Eigenvalues of a square matrix, overwritten, by descending modulus, a conjugate pair with the positive imaginary
/// part first (geev).
template <class T> STIEFEL_API void eigenvalues(Mat<T> A, std::span<std::complex<double>> values);

}  // namespace stiefel
