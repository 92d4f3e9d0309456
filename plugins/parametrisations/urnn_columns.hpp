/// Factors of the uRNN's matrix on one column, by the SIMD target that stiefel::product_target() names.
///
/// A column holds n numbers Re over n numbers Im.
#pragma once

#include <stiefel/matrix.hpp>

namespace stiefel {

/// diag(c + is).
template <class S> struct UrnnPhases { Vector<S> c, s; };

/// I − 2vvᴴ/‖v‖²: the inner product vᴴh is v·h + i iv·h of the real columns v, iv and h.
template <class S> struct UrnnReflection {
  Vector<S> v, iv;
  S scale = 0;  // 2/‖v‖²
};

template <class S> struct UrnnCoefficient { S re, im; };

/// y ← Dx, and y ← D* x, where y may be x.
template <class S> void urnn_turn(const UrnnPhases<S>& D, const S* x, S* y);
template <class S> void urnn_turn_adjoint(const UrnnPhases<S>& D, const S* x, S* y);
/// total_k += Im(g_k conj(x_k)): θ̄ from both sides of D, before it or behind it.
template <class S> void urnn_add_phases(Index n, const S* x, const S* g, S* total);

/// h ← h − αv with α = 2vᴴh/‖v‖², which is returned.
template <class S> UrnnCoefficient<S> urnn_reflect(const UrnnReflection<S>& R, S* h);
/// For the h that entered and the α of it: sum −= conj(α) g + conj(β) h, g ← g − βv, where β = 2vᴴg/‖v‖².
template <class S> void urnn_pull_back(const UrnnReflection<S>& R, const S* h, UrnnCoefficient<S> alpha, S* g, S* sum);

}  // namespace stiefel
