#include "skew_exponential.hpp"

#include <cmath>
#include <Eigen/Householder>

#include <stiefel/linear_algebra.hpp>

namespace stiefel {
namespace {

double sinc(double x) { return std::abs(x) < 1e-8 ? 1 : std::sin(x) / x; }
/// conj(Φ) of two eigenvalues iμ, iν.
std::complex<double> conjugate_quotient(double mu, double nu) {
  return std::polar(1.0, -(mu + nu) / 2) * sinc((mu - nu) / 2);
}

}  // namespace

void SkewExponential<std::complex<double>>::compute(const Complex& A) {
  Q_ = std::complex<double>(0, -1) * A;
  mu_.resize(A.rows());
  hermitian_eigen(view(Q_), {mu_.data(), std::size_t(mu_.size())});
}

Complex SkewExponential<std::complex<double>>::value() const {
  const Complex turned = Q_ * (std::complex<double>(0, 1) * mu_).array().exp().matrix().asDiagonal();
  return product(turned, stiefel::adjoint(Q_));
}

Complex SkewExponential<std::complex<double>>::adjoint(const Complex& dW) const {
  Complex inner = product(stiefel::adjoint(Q_), product(dW, Q_));
  for (Index k = 0; k < inner.cols(); ++k)
    for (Index j = 0; j < inner.rows(); ++j) inner(j, k) *= conjugate_quotient(mu_[j], mu_[k]);
  return product(product(Q_, inner), stiefel::adjoint(Q_));
}

void SkewExponential<double>::compute(const Matrix<double>& A) {
  const Index n = A.rows(), even = n + n % 2, half = even / 2;
  Matrix<double> T = Matrix<double>::Zero(even, even);
  T.topLeftCorner(n, n) = A;
  const Vector<double> reflections = tridiagonalise(T);
  Matrix<double> K = Matrix<double>::Zero(half, half), U(half, half), Vh(half, half);
  for (Index i = 0; i < half; ++i) {
    K(i, i) = T(2 * i + 1, 2 * i);
    if (i + 1 < half) K(i, i + 1) = -T(2 * i + 2, 2 * i + 1);
  }
  sigma_.resize(half);
  singular_value_decomposition(view(K), view(U), {sigma_.data(), std::size_t(half)}, view(Vh));
  Matrix<double> frame = Matrix<double>::Zero(even, even);
  for (Index i = 0; i < half; ++i) {
    frame.row(2 * i).head(half) = Vh.col(i).transpose();
    frame.row(2 * i + 1).tail(half) = U.row(i);
  }
  if (even > 2) frame.applyOnTheLeft(Eigen::householderSequence(T, reflections).setLength(even - 2).setShift(1));
  frame_ = frame.topRows(n);
}

Matrix<double> SkewExponential<double>::value() const {
  const Index half = sigma_.size();
  const auto E = frame_.leftCols(half), O = frame_.rightCols(half);
  const Vector<double> c = sigma_.array().cos(), s = sigma_.array().sin();
  Matrix<double> turned(frame_.rows(), frame_.cols());
  turned.leftCols(half) = E * c.asDiagonal() + O * s.asDiagonal();
  turned.rightCols(half) = O * c.asDiagonal() - E * s.asDiagonal();
  return product(turned, transposed(frame_));
}

Matrix<double> SkewExponential<double>::adjoint(const Matrix<double>& dW) const {
  Matrix<double> inner = product(transposed(frame_), product(dW, frame_));
  const Index half = sigma_.size();
  for (Index k = 0; k < half; ++k)
    for (Index j = 0; j < half; ++j) {
      double &ee = inner(j, k), &oe = inner(half + j, k), &eo = inner(j, half + k), &oo = inner(half + j, half + k);
      // Entries of Qᴴ dW Q for the eigenvalues iσ_j, iσ_k and iσ_j, −iσ_k; the other two are their conjugates.
      const std::complex<double> same =
          conjugate_quotient(sigma_[j], sigma_[k]) * std::complex<double>(ee + oo, oe - eo) / 2.0;
      const std::complex<double> other =
          conjugate_quotient(sigma_[j], -sigma_[k]) * std::complex<double>(ee - oo, oe + eo) / 2.0;
      ee = (same + other).real();
      oo = (same - other).real();
      oe = (same + other).imag();
      eo = (other - same).imag();
    }
  return product(product(frame_, inner), transposed(frame_));
}

Vector<double> SkewExponential<double>::tridiagonalise(Matrix<double>& T) {
  const Index n = T.rows();
  Vector<double> coefficients = Vector<double>::Zero(std::max<Index>(n - 2, 0)), u, p;
  for (Index j = 0; j + 2 < n; ++j) {
    const Index rest = n - j - 1;
    double below = 0;
    T.col(j).tail(rest).makeHouseholderInPlace(coefficients[j], below);
    u = T.col(j).tail(rest);
    u[0] = 1;
    T(j + 1, j) = below;
    auto S = T.bottomRightCorner(rest, rest);
    p.noalias() = S * u;
    p *= coefficients[j];
    for (Index c = 0; c < rest; ++c) S.col(c) += p[c] * u - u[c] * p;
  }
  return coefficients;
}

template <class T> Matrix<T> pade_exponential(Matrix<T> A) {
  constexpr double b[] = {64764752532480000.,
                          32382376266240000.,
                          7771770303897600.,
                          1187353796428800.,
                          129060195264000.,
                          10559470521600.,
                          670442572800.,
                          33522128640.,
                          1323241920.,
                          40840800.,
                          960960.,
                          16380.,
                          182.,
                          1.};
  constexpr double largest_norm = 5.371920351148152;
  const double norm = A.size() ? A.cwiseAbs().colwise().sum().maxCoeff() : 0;
  const int squarings = std::isfinite(norm) && norm > largest_norm ? int(std::ceil(std::log2(norm / largest_norm))) : 0;
  A *= std::ldexp(1.0, -squarings);
  const Matrix<T> I = Matrix<T>::Identity(A.rows(), A.cols()), A2 = product(A, A), A4 = product(A2, A2),
                  A6 = product(A4, A2);
  const Matrix<T> high_odd = b[13] * A6 + b[11] * A4 + b[9] * A2, high_even = b[12] * A6 + b[10] * A4 + b[8] * A2;
  const Matrix<T> inner = product(A6, high_odd) + b[7] * A6 + b[5] * A4 + b[3] * A2 + b[1] * I;
  const Matrix<T> odd = product(A, inner), even = product(A6, high_even) + b[6] * A6 + b[4] * A4 + b[2] * A2 + b[0] * I;
  Matrix<T> denominator = even - odd, result = even + odd;
  solve(view(denominator), view(result));
  for (int k = 0; k < squarings; ++k) result = product(result, result);
  return result;
}

template <class T> Matrix<T> block_adjoint(const Matrix<T>& A, const Matrix<T>& dW) {
  const Index n = A.rows();
  const double scale = dW.norm();
  if (scale == 0) return Matrix<T>::Zero(n, n);
  Matrix<T> block = Matrix<T>::Zero(2 * n, 2 * n);
  block.topLeftCorner(n, n) = block.bottomRightCorner(n, n) = A.adjoint();
  block.topRightCorner(n, n) = dW / scale;
  return scale * pade_exponential(std::move(block)).topRightCorner(n, n);
}

template Matrix<double> pade_exponential(Matrix<double>);
template Complex pade_exponential(Complex);
template Matrix<double> block_adjoint(const Matrix<double>&, const Matrix<double>&);
template Complex block_adjoint(const Complex&, const Complex&);

}  // namespace stiefel
