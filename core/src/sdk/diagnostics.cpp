// Orthogonality of W as the network applies it.
#include "sdk/diagnostics.hpp"

#include <vector>

#include <stiefel/linear_algebra.hpp>

namespace stiefel {

template <class S> Matrix<double> matrix_of(const Parametrisation<S>& map) {
  if (const CMat<S> W = map.matrix(); W.size() > 0) return W.template cast<double>();
  const Matrix<S> I = Matrix<S>::Identity(map.cols(), map.cols());
  Matrix<S> W(map.rows(), map.cols());
  std::vector<S> memory(std::size_t(map.scratch(map.cols())));
  Scratch<S> scratch{std::span<S>(memory)};
  map.apply(I, view(W), scratch);
  return W.template cast<double>();
}

Defect orthogonality_defect(const Matrix<double>& W, bool complex) {
  const Index columns = complex ? W.cols() / 2 : W.cols();
  // For the real form, Ŵᵀ times its left half is WᴴW, Re over Im.
  Matrix<double> G = product(transposed(W), W.leftCols(columns));
  G.diagonal().array() -= 1;
  if (!complex) return {G.norm(), G.cwiseAbs().maxCoeff()};
  return {G.norm(),
          std::sqrt((G.topRows(columns).array().square() + G.bottomRows(columns).array().square()).maxCoeff())};
}

template STIEFEL_API Matrix<double> matrix_of(const Parametrisation<float>&);
template STIEFEL_API Matrix<double> matrix_of(const Parametrisation<double>&);

}  // namespace stiefel
