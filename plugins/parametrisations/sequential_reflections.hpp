// A product of reflections applied to one vector by one reflection after another (Mhammedi et al. 2017, algorithm 1).
//
//   W = H(U_0) H(U_1) … H(U_{r−1}),   H(u) y = y − (2uᵀy/‖u‖²)u
//   pullback of W x:   x_j = H(U_{j+1}) … x,   g ← H(U_j) g from j = 0
//                      Ū_j = −h_j g − c_j x_j,   h_j, c_j the factors of the two
//
// Column j of U is zero above row j: every loop is over its n − j stored numbers.
// Operations of the algorithm as published, which cost() gives: (4n − r + 2)r to apply W, (4n − 2r + 3)r for g and 3nr
// for Ū, together (7n − 2r + 3)r, and (11n − 3r + 5)r with the x_j recomputed. Those of these loops, per stored number:
// 4 to apply W or Wᵀ (2 for uᵀy and its factor together, 2 for the difference), 14 for the pullback (4 for the h, 4 for
// g, 2 to undo a reflection of the state, 4 for Ū with its sum): less forward, where the published count has the zeros
// of U, more backward. Keeping all x_j would need n·r memory.
#pragma once

#include <stiefel/matrix.hpp>

namespace stiefel {

template <class S> struct SequentialReflections {
  const Matrix<S>& U;      // n × r
  const Vector<S>& twice;  // r: 2/‖u‖²

  /// y ← H(U_j)y; returns the factor of u in the difference.
  template <class V> S reflect(Index j, V&& y) const {
    const Index length = U.rows() - j;
    const auto u = U.col(j).tail(length);
    const S factor = twice[j] * u.dot(y.tail(length));
    y.tail(length) -= factor * u;
    return factor;
  }

  template <class V> void apply(V&& y) const {
    for (Index j = U.cols() - 1; j >= 0; --j) reflect(j, y);
  }
  template <class V> void apply_adjoint(V&& y) const {
    for (Index j = 0; j < U.cols(); ++j) reflect(j, y);
  }

  /// dU += Ū for x = `state` and the gradient `g` of W x. `g` becomes Wᵀg, `state` is x again up to rounding; h: r
  /// numbers of workspace.
  template <class V, class M> void accumulate(V&& state, V&& g, V&& h, M&& dU) const {
    for (Index j = U.cols() - 1; j >= 0; --j) h(j) = reflect(j, state);
    for (Index j = 0; j < U.cols(); ++j) {
      const Index length = U.rows() - j;
      const S c = reflect(j, g);
      state.tail(length) += h(j) * U.col(j).tail(length);
      dU.col(j).tail(length) -= h(j) * g.tail(length) + c * state.tail(length);
    }
  }
};

}  // namespace stiefel
