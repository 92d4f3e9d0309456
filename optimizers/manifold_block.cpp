#include "manifold_block.hpp"

#include <cmath>

#include <stiefel/linear_algebra.hpp>

namespace stiefel::manifold {

template <class T> Matrix<T> tangent(const Matrix<T>& G, const Matrix<T>& M) {
  const Matrix<T> P = product(G, adjoint(M));
  return P - P.adjoint();
}

// X is the fixed point of X ← M − η/2 AX, begun with M, where so few iterations reach the precision of T that they are
// cheaper than a factorization.
template <class T> Matrix<T> cayley_change(Matrix<T> A, double eta, const Matrix<T>& M) {
  A *= RealOf<T>(eta / 2);
  const double contraction = A.norm(), enough = double(Eigen::NumTraits<RealOf<T>>::epsilon()) / 8;
  constexpr int most = 2;
  Matrix<T> X = M;
  if (std::pow(contraction, most + 2) <= enough) {
    Matrix<T> next(M.rows(), M.cols());
    for (int k = 0; std::pow(contraction, k + 2) > enough; ++k) {
      next = M;
      add_product<T>(A, X, next, -1);
      X.swap(next);
    }
  } else {
    Matrix<T> factors = A;
    factors.diagonal().array() += T(1);
    solve(view(factors), view(X));
  }
  Matrix<T> change = product(A, X);
  change *= RealOf<T>(-2);
  return change;
}

// By Newton–Schulz steps M(3I − MᴴM)/2, which square the defect, or, far away, by the singular value decomposition.
template <class T> void project(Matrix<T>& M) {
  const Index n = M.cols();
  const double enough = 1e-15 * double(n);
  for (int k = 0; k < 8; ++k) {
    Matrix<T> defect = product(adjoint(M), M);
    defect.diagonal().array() -= T(1);
    const double size = defect.norm();
    if (!(size < 0.5)) break;
    if (size > enough) M -= 0.5 * product(M, defect);
    if (size < 1e-7) return;  // its square is below the rounding of double
  }
  polar_factor(view(M));
}

template Matrix<float> tangent(const Matrix<float>&, const Matrix<float>&);
template Matrix<double> tangent(const Matrix<double>&, const Matrix<double>&);
template Matrix<std::complex<float>> tangent(const Matrix<std::complex<float>>&, const Matrix<std::complex<float>>&);
template Matrix<std::complex<double>> tangent(const Matrix<std::complex<double>>&, const Matrix<std::complex<double>>&);
template Matrix<float> cayley_change(Matrix<float>, double, const Matrix<float>&);
template Matrix<double> cayley_change(Matrix<double>, double, const Matrix<double>&);
template Matrix<std::complex<float>> cayley_change(Matrix<std::complex<float>>, double,
                                                   const Matrix<std::complex<float>>&);
template Matrix<std::complex<double>> cayley_change(Matrix<std::complex<double>>, double,
                                                    const Matrix<std::complex<double>>&);
template void project(Matrix<double>&);
template void project(Matrix<std::complex<double>>&);

}  // namespace stiefel::manifold
