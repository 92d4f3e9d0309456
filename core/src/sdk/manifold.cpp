#include <cmath>

#include <stiefel/linear_algebra.hpp>
#include <stiefel/manifold.hpp>

namespace stiefel::manifold {

template <class T> Matrix<T> tangent(CMat<T> G, CMat<T> M) {
  const Matrix<T> P = product(G, adjoint(M));
  return P - P.adjoint();
}

// X is the fixed point of X ← M − η/2 AX, begun with M, where so few iterations reach the precision of T that they are
// cheaper than a factorization. k of them leave out 2(−η/2 A)^(k+2) M of the change: for odd k a tangent, which leaves
// the manifold to second order only. For even k it would do so to first order, at each step in the same direction.
template <class T> Matrix<T> cayley_change(Matrix<T> A, double eta, CMat<T> M) {
  A *= RealOf<T>(eta / 2);
  const double contraction = A.norm(), enough = double(Eigen::NumTraits<RealOf<T>>::epsilon()) / 8;
  const auto reached = [&](int iterations) { return std::pow(contraction, iterations + 2) <= enough; };
  Matrix<T> X = M;
  if (const int iterations = reached(1) ? 1 : 3; reached(iterations)) {
    Matrix<T> next(M.rows(), M.cols());
    for (int k = 0; k < iterations; ++k) {
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

#define STIEFEL_INSTANTIATE(T)                              \
  template STIEFEL_API Matrix<T> tangent(CMat<T>, CMat<T>); \
  template STIEFEL_API Matrix<T> cayley_change(Matrix<T>, double, CMat<T>);
STIEFEL_INSTANTIATE(float)
STIEFEL_INSTANTIATE(double)
STIEFEL_INSTANTIATE(std::complex<float>)
STIEFEL_INSTANTIATE(std::complex<double>)
#undef STIEFEL_INSTANTIATE
template STIEFEL_API void project(Matrix<double>&);
template STIEFEL_API void project(Matrix<std::complex<double>>&);

}  // namespace stiefel::manifold
