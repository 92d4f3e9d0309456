// Products by plain loops.
#include "conformance/plain_maps.hpp"

#include "sdk/require.hpp"

namespace stiefel::conformance {

namespace {
template <class S, class A> void product(const A& W, CMat<S> X, Mat<S> Y, bool accumulate) {
  require(X.rows() == W.cols() && Y.rows() == W.rows() && X.cols() == Y.cols(),
          "a product of {} × {} with {} × {} is to be written to {} × {}", W.rows(), W.cols(), X.rows(), X.cols(),
          Y.rows(), Y.cols());
  const Index rows = W.rows(), step = W.rowStride();
  for (Index j = 0; j < X.cols(); ++j) {
    S* y = Y.data() + j * Y.outerStride();
    if (!accumulate) std::fill_n(y, rows, S(0));
    for (Index k = 0; k < W.cols(); ++k) {
      const S *w = W.data() + k * W.colStride(), x = X(k, j);
      for (Index i = 0; i < rows; ++i) y[i] += w[i * step] * x;
    }
  }
}
}  // namespace

template <class S> void PlainMaps<S>::apply(Index map, CMat<S> X, Mat<S> Y, Scratch<S>&) const {
  product<S>(matrices_.at(std::size_t(map)), X, Y, false);
}
template <class S> void PlainMaps<S>::add(Index first, Index count, CMat<S> X, Mat<S> Y, Scratch<S>&) const {
  Index row = 0;
  for (Index k = first; k < first + count; ++k) {
    const CMat<S>& W = matrices_.at(std::size_t(k));
    require(row + W.rows() <= Y.rows(), "the maps {} to {} have more rows than the {} of Y", first, first + count - 1,
            Y.rows());
    product<S>(W, X, rows_of(Y, row, W.rows()), true);
    row += W.rows();
  }
}
template <class S> void PlainMaps<S>::note(CMat<S> dY) const {
  if (dY.size() > 0) largest_ = std::max(largest_, double(dY.template lpNorm<Eigen::Infinity>()));
}
template <class S> void PlainMaps<S>::apply_adjoint(Index map, CMat<S> dY, Mat<S> dX, Scratch<S>&) const {
  note(dY);
  product<S>(matrices_.at(std::size_t(map)).transpose(), dY, dX, false);
}
template <class S> void PlainMaps<S>::add_adjoint(Index first, Index count, CMat<S> dY, Mat<S> dX, Scratch<S>&) const {
  note(dY);
  Index row = 0;
  for (Index k = first; k < first + count; ++k) {
    const CMat<S>& W = matrices_.at(std::size_t(k));
    require(row + W.rows() <= dY.rows(), "the maps {} to {} have more rows than the {} of dY", first, first + count - 1,
            dY.rows());
    product<S>(W.transpose(), rows_of(dY, row, W.rows()), dX, true);
    row += W.rows();
  }
}

template class PlainMaps<float>;
template class PlainMaps<double>;

}  // namespace stiefel::conformance
