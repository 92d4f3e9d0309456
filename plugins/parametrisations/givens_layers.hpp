/// Layers of plane rotations on one column in place, by the SIMD target that stiefel::product_target() names.
///
///   y_i = cos θ x_i − e^{iφ} sin θ x_j         y_j = sin θ x_i + e^{iφ} cos θ x_j
#pragma once

#include <vector>

#include <stiefel/matrix.hpp>

namespace stiefel {

/// The pairs of rows (i + k·stride, j + k·stride), k < count, with the angles first, first + 1, …; stride is 1, 2 or 4.
struct GivensRun {
  Index i, j, stride, count, first;
};

/// Runs in the order in which they act, and cos θ, sin θ, cos φ, sin φ of every pair. `e_re` and `e_im` are empty for
/// real rotations; complex columns hold n numbers Re over n numbers Im.
template <class S> struct GivensLayers {
  std::vector<GivensRun> runs;
  Vector<S> c, s, e_re, e_im;
  Index n = 0;
};

/// x ← y of all layers.
template <class S> void givens_forward(const GivensLayers<S>& layers, S* x);
/// y ← x, the inverse and adjoint.
template <class S> void givens_inverse(const GivensLayers<S>& layers, S* y);
/// From y and its gradient g back to x and its gradient, both in place; θ̄ and φ̄ of every pair are added to dtheta and
/// dphi, on the way:
///
///   u = e^{iφ}x_j = cos θ y_j − sin θ y_i, ū likewise of g     θ̄ = Re(conj(g_j) y_i − conj(g_i) y_j)
///                                                              φ̄ = Im(ū conj(u))
template <class S> void givens_pullback(const GivensLayers<S>& layers, S* y, S* g, S* dtheta, S* dphi);

}  // namespace stiefel
