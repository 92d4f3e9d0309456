// What every parametrisation has for nothing: default bodies, dense maps, skew-symmetric matrices by their lower
// triangle.
#include <stiefel/parametrisation.hpp>

#include <algorithm>
#include <stiefel/linear_algebra.hpp>

#include "sdk/diagnostics.hpp"
#include "sdk/require.hpp"

namespace stiefel {

Shape Shape::square(const char* plugin) const {
  if (rows == cols) return *this;
  throw Error(std::string(plugin) + " needs a square map, but this one has " + std::to_string(rows) + " rows and " +
              std::to_string(cols) + " columns; choose a parametrisation that can be rectangular, such as dense");
}

template <class S> Parametrisation<S>::~Parametrisation() = default;
template <class S> Index Parametrisation<S>::scratch(Index) const { return 0; }
template <class S> void Parametrisation<S>::add(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const {
  const Mat<S> WX = scratch.take(rows(), X.cols());
  apply(X, WX, scratch);
  Y += WX;
}
template <class S> void Parametrisation<S>::add_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const {
  const Mat<S> WtdY = scratch.take(cols(), dY.cols());
  apply_adjoint(dY, WtdY, scratch);
  dX += WtdY;
}
template <class S> double Parametrisation<S>::penalty(CBlocks<S>, Blocks<S>) { return 0; }
template <class S> void Parametrisation<S>::after_step(Blocks<S>) {}
template <class S> bool Parametrisation<S>::materialises() const { return false; }
template <class S> void Parametrisation<S>::materialise(CBlocks<S>, Mat<S> W) {
  const Index n = rows() / 2, m = complex_pairs() ? cols() / 2 : cols();
  const Matrix<S> I = Matrix<S>::Identity(cols(), m);
  std::vector<S> memory(std::size_t(scratch(m)));
  Scratch<S> working(memory);
  apply(I, W.leftCols(m), working);
  if (!complex_pairs()) return;
  W.topRightCorner(n, m) = -W.bottomLeftCorner(n, m);  // W = [[A, −B], [B, A]]
  W.bottomRightCorner(n, m) = W.topLeftCorner(n, m);
}
template <class S> void Parametrisation<S>::pullback(CBlocks<S> theta, CMat<S>, CMat<S> dW, Blocks<S> dtheta) {
  const Index n = rows() / 2, m = complex_pairs() ? cols() / 2 : cols();
  const Matrix<S> I = Matrix<S>::Identity(cols(), m);
  Matrix<S> dleft = dW.leftCols(m);
  if (complex_pairs()) {
    dleft.topRows(n) += dW.bottomRightCorner(n, m);
    dleft.bottomRows(n) -= dW.topRightCorner(n, m);
  }
  std::vector<S> sum(static_cast<std::size_t>(accumulator())), memory(static_cast<std::size_t>(scratch(m)));
  Scratch<S> working(memory);
  accumulate(I, dleft, sum, working);
  finish(theta, sum, dtheta);
}
template <class S> CMat<S> Parametrisation<S>::matrix() const { return {}; }
template <class S> Claim Parametrisation<S>::claim() const { return {}; }
template <class S> Cost Parametrisation<S>::cost(Index columns) const {
  const double n = double(rows()), m = double(cols()),
               c = double(columns);  // exact for a matrix; accumulate adds to its sum
  return {0, n * (2 * m - 1) * c, m * (2 * n - 1) * c, 2 * n * m * c, 0, 0, 0};
}
template <class S> void Parametrisation<S>::record(Recorder&) const {}
template <class S> void Parametrisation<S>::serialise(Archive&) {}

namespace {

template <class T> Spectrum spectrum_of(const Matrix<T>& W) {
  const bool square = W.rows() == W.cols();
  Spectrum spectrum{std::vector<double>(std::size_t(std::min(W.rows(), W.cols()))),
                    std::vector<std::complex<double>>(square ? std::size_t(W.rows()) : 0)};
  Matrix<T> destroyed = W;
  singular_values(view(destroyed), spectrum.singular_values);
  if (!square) return spectrum;
  destroyed = W;
  eigenvalues(view(destroyed), spectrum.eigenvalues);
  return spectrum;
}

}  // namespace

template <class S> Spectrum Parametrisation<S>::spectrum() const {
  const Matrix<double> W = matrix_of(*this);
  if (!complex_pairs()) return spectrum_of(W);
  const Index rows = this->rows() / 2, cols = this->cols() / 2;
  Matrix<std::complex<double>> C(rows, cols);  // the left half of [[A, −B], [B, A]] holds A over B
  C.real() = W.topLeftCorner(rows, cols);
  C.imag() = W.bottomLeftCorner(rows, cols);
  return spectrum_of(C);
}

template <class S> Dense<S>::Dense(Shape shape) : Parametrisation<S>(shape) {}
template <class S> Dense<S>::~Dense() = default;
template <class S> CMat<S> Dense<S>::matrix() const {
  return cmat<S>(W_.data(), this->rows(), this->cols(), this->rows());
}

template <class S> void Dense<S>::refresh(CBlocks<S> theta) {
  if (W_.size() == 0) W_.setZero(this->rows(), this->cols());
  this->materialise(theta, view(W_));
}

template <class S> void Dense<S>::apply(CMat<S> X, Mat<S> Y, Scratch<S>&) const { multiply<S>(W_, X, Y); }
template <class S> void Dense<S>::apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>&) const {
  multiply<S>(transposed(W_), dY, dX);
}

template <class S> void Dense<S>::accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>&) const {
  add_product<S>(dY, transposed(X), as_matrix(sum, this->rows(), this->cols()));
}

template <class S> void Dense<S>::finish(CBlocks<S> theta, std::span<const S> sum, Blocks<S> dtheta) {
  this->pullback(theta, matrix(), as_matrix(sum, this->rows(), this->cols()), dtheta);
}

namespace {

template <class S> void require_triangle(std::size_t size, CMat<S> A) {
  const Index n = A.rows();
  require(A.cols() == n && Index(size) == n * (n - 1) / 2,
          "{} numbers are not the strict lower triangle of {} × {}; correct blocks(), or the split of the sum", size, n,
          A.cols());
}

}  // namespace

template <class S> void skew(std::span<const S> theta, Given<Mat<S>> A) {
  const Index n = A.rows();
  require_triangle<S>(theta.size(), A);
  const S* next = theta.data();
  for (Index j = 0; j < n; ++j) {
    A(j, j) = 0;
    for (Index i = j + 1; i < n; ++i, ++next) {
      A(i, j) = *next;
      A(j, i) = -*next;
    }
  }
}

template <class S> void add_skew(std::span<S> dtheta, Given<CMat<S>> dA) {
  const Index n = dA.rows();
  require_triangle<S>(dtheta.size(), dA);
  S* next = dtheta.data();
  for (Index j = 0; j < n; ++j)
    for (Index i = j + 1; i < n; ++i, ++next) *next += dA(i, j) - dA(j, i);
}

template class Parametrisation<float>;
template class Parametrisation<double>;
template class Dense<float>;
template class Dense<double>;
template STIEFEL_API void skew<float>(std::span<const float>, Mat<float>);
template STIEFEL_API void skew<double>(std::span<const double>, Mat<double>);
template STIEFEL_API void add_skew<float>(std::span<float>, CMat<float>);
template STIEFEL_API void add_skew<double>(std::span<double>, CMat<double>);

}  // namespace stiefel
