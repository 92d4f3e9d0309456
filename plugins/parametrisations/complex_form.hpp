// Matrices that are real or complex, seen as the real maps of the SDK: W = A + iB acts on Re over Im as [[A, −B], [B,
// A]] (Mhammedi et al. 2017, section 3). The gradient of a complex W is ∂L/∂Re W + i ∂L/∂Im W.
#pragma once

#include <complex>
#include <stiefel/matrix.hpp>

namespace stiefel {

using Complex = Matrix<std::complex<double>>;
template <class T> constexpr bool is_complex = bool(Eigen::NumTraits<T>::IsComplex);

/// The matrix as the engine sees it: 2n × 2n for a complex n × n one.
template <class S, class T> void write_real_form(const Matrix<T>& W, Mat<S> out) {
  if constexpr (is_complex<T>) {
    const Index n = W.rows(), m = W.cols();
    out.topLeftCorner(n, m) = out.bottomRightCorner(n, m) = W.real().template cast<S>();
    out.bottomLeftCorner(n, m) = W.imag().template cast<S>();
    out.topRightCorner(n, m) = -out.bottomLeftCorner(n, m);
  } else {
    out = W.template cast<S>();
  }
}

/// The gradient for W from that for its real form.
template <class T, class D> Matrix<T> gradient_of_form(const Eigen::MatrixBase<D>& dW) {
  if constexpr (is_complex<T>) {
    const Index n = dW.rows() / 2, m = dW.cols() / 2;
    Complex gradient(n, m);
    gradient.real() = (dW.topLeftCorner(n, m) + dW.bottomRightCorner(n, m)).template cast<double>();
    gradient.imag() = (dW.bottomLeftCorner(n, m) - dW.topRightCorner(n, m)).template cast<double>();
    return gradient;
  } else {
    return dW.template cast<double>();
  }
}

/// A complex matrix from its real and imaginary rows, Re over Im, and back.
template <class D> Complex from_re_over_im(const Eigen::MatrixBase<D>& rows) {
  const Index n = rows.rows() / 2;
  Complex value(n, rows.cols());
  value.real() = rows.topRows(n).template cast<double>();
  value.imag() = rows.bottomRows(n).template cast<double>();
  return value;
}
template <class S> Matrix<S> re_over_im(const Complex& value) {
  Matrix<S> rows(2 * value.rows(), value.cols());
  rows.topRows(value.rows()) = value.real().template cast<S>();
  rows.bottomRows(value.rows()) = value.imag().template cast<S>();
  return rows;
}

/// The same for a block that holds Re over Im only if `complex_values`, and a real matrix otherwise.
template <class D> Complex from_parameter(const Eigen::MatrixBase<D>& block, bool complex_values) {
  return complex_values ? from_re_over_im(block) : Complex(block.template cast<std::complex<double>>());
}
template <class S> Matrix<S> as_parameter(const Complex& value, bool complex_values) {
  return complex_values ? re_over_im<S>(value) : Matrix<S>(value.real().template cast<S>());
}

}  // namespace stiefel
