/// Products and factorizations by BLAS and LAPACK, real and complex, compiled once in the runtime: a plugin that calls
/// them compiles several times faster than with Eigen's operators and decompositions, which give the same numbers up to
/// rounding.
///
/// Pass outputs as `Mat`, e.g. view(A); inputs convert automatically. Factorizations throw Error (Exit::diverged) on
/// NaN or Inf and when LAPACK fails, and they allocate. Sizes that do not fit throw Error. All functions are
/// thread-safe.
#pragma once

#include <complex>
#include <span>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

/// T is double or std::complex<double> everywhere; for products, triangular and other solves and inverses also float or
/// std::complex<float>. The linker reports other types as undefined symbols.

/// What a product or a solve reads: A, transposed(A) or adjoint(A).
template <class T> struct Operand {
  using Scalar = T;
  template <detail::Columns<T> D> Operand(const Eigen::MatrixBase<D>& A, char form = 'N') : matrix(A), form(form) {}
  Index rows() const { return form == 'N' ? matrix.rows() : matrix.cols(); }
  Index cols() const { return form == 'N' ? matrix.cols() : matrix.rows(); }

  CMat<T> matrix;
  char form;  ///< as BLAS calls it: N, T, C
};
template <class D> Operand<typename D::Scalar> transposed(const Eigen::MatrixBase<D>& A) { return {A, 'T'}; }
template <class D> Operand<typename D::Scalar> adjoint(const Eigen::MatrixBase<D>& A) { return {A, 'C'}; }

namespace detail {
template <class T> Operand<T> operand(const Operand<T>& A) { return A; }
template <class D> Operand<typename D::Scalar> operand(const Eigen::MatrixBase<D>& A) { return A; }
}  // namespace detail

/// C = A·B; C overlaps neither. Allocates nothing itself (gemm).
template <class T> STIEFEL_API void multiply(Given<Operand<T>> A, Given<Operand<T>> B, Mat<T> C);
/// C += factor·A·B (gemm).
template <class T>
STIEFEL_API void add_product(Given<Operand<T>> A, Given<Operand<T>> B, Mat<T> C, Given<T> factor = T(1));

/// A·B (gemm). An expression is computed first: product(Matrix<S>(2 * A), B).
template <class X, class Y> auto product(const X& A, const Y& B) {
  using T = typename decltype(detail::operand(A))::Scalar;
  const Operand<T> left = detail::operand(A), right = detail::operand(B);
  Matrix<T> C(left.rows(), right.cols());
  multiply<T>(left, right, C);
  return C;
}

enum class Triangle { lower, upper, unit_lower, unit_upper };
/// B ← A⁻¹B with the given triangle of the matrix in A, n × n; the rest of it is not read. A zero on a diagonal that is
/// read throws; NaN passes through. Allocates nothing itself (trsm).
template <class T> STIEFEL_API void solve_triangular(Triangle triangle, Given<Operand<T>> A, Mat<T> B);
/// B ← BA⁻¹.
template <class T> STIEFEL_API void solve_triangular_right(Triangle triangle, Given<Operand<T>> A, Mat<T> B);

/// A ← A⁻¹, n × n (getrf, getri); throws when A is singular.
template <class T> STIEFEL_API void invert(Mat<T> A);

/// B ← A⁻¹B, A: n × n, overwritten, B: n × any (gesv); throws when A is singular.
template <class T> STIEFEL_API void solve(Mat<T> A, Mat<T> B);

/// A ← Q of A = QR with a positive diagonal of R, m × n with m ≥ n: of a Gaussian A, Q is Haar-distributed (geqrf,
/// orgqr).
template <class T> STIEFEL_API void orthonormalise(Mat<T> A);

/// ‖AᴴA − I‖_F: 0 if the columns of A are orthonormal (gemm).
template <class T> STIEFEL_API double isometry_defect(Given<CMat<T>> A);

/// A ← UVᴴ of A = UΣVᴴ, the closest matrix with orthonormal columns, m × n with m ≥ n (gesdd).
template <class T> STIEFEL_API void polar_factor(Mat<T> A);

/// A = V diag(λ) Vᴴ, n × n Hermitian, given by its lower triangle, the rest finite; A ← V, λ₁ ≤ λ₂ ≤ … (syevd, heevd).
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
