// OpenBLAS made ready for concurrent callers, and the drivers of LAPACK that the runtime uses, in double precision.
#pragma once

#include <complex>
#include <string>
#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

/// Sets OpenBLAS to one thread per call; throws Error when it is not the pthread flavour. Call it before the first product.
STIEFEL_API void start_blas();
/// The refusal for a value of openblas_get_parallel() (0 serial, 1 pthread, 2 OpenMP), empty for 1.
STIEFEL_API std::string blas_refusal(int parallel);
/// The kernel set in use, e.g. "SkylakeX", and the version and build options: part of a run's provenance.
STIEFEL_API std::string blas_core();
STIEFEL_API std::string blas_configuration();

using ComplexMatrix = Eigen::MatrixXcd;

/// σ₁ ≥ σ₂ ≥ … of an m × n matrix, min(m, n) numbers (gesdd). All functions throw Error (Exit::diverged) on NaN or Inf.
STIEFEL_API std::vector<double> singular_values(Matrix<double> A);
STIEFEL_API std::vector<double> singular_values(ComplexMatrix A);

/// A = U diag(s) Vᵀ with k = min(m, n): U is m × k, Vt is k × n (gesdd).
struct Svd {
  Matrix<double> U, Vt;
  std::vector<double> s;
};
STIEFEL_API Svd singular_value_decomposition(Matrix<double> A);

/// Eigenvalues of a square matrix, by descending modulus, a conjugate pair with the positive imaginary part first (geev).
STIEFEL_API std::vector<std::complex<double>> eigenvalues(Matrix<double> A);
STIEFEL_API std::vector<std::complex<double>> eigenvalues(ComplexMatrix A);

/// Eigenvalues of a symmetric matrix, ascending; the lower triangle is read (syevd).
STIEFEL_API std::vector<double> symmetric_eigenvalues(Matrix<double> A);

}  // namespace stiefel
