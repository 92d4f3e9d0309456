/// Factors of the uRNN's matrix on one column, by the SIMD target that stiefel::product_target() names.
///
/// The engine's columns hold n numbers Re over n numbers Im. Fourier transforms are several times as fast on pairs (Re,
/// Im), one after the other: the outermost factors change from one to the other on the way.
#pragma once

#include <stiefel/matrix.hpp>

namespace stiefel {

/// diag(c + is).
template <class S> struct UrnnPhases { Vector<S> c, s; };

/// I − 2vvᴴ/‖v‖², with v and iv as pairs: the inner product vᴴh is v·h + i iv·h of real vectors.
template <class S> struct UrnnReflection {
  Vector<S> v, iv;
  S scale = 0;  // 2/‖v‖²
};

template <class S> struct UrnnCoefficient { S re, im; };

/// pairs ← Dx, and ← D* x, of a column x.
template <class S> void urnn_enter(const UrnnPhases<S>& D, const S* column, S* pairs);
template <class S> void urnn_enter_adjoint(const UrnnPhases<S>& D, const S* column, S* pairs);
/// column ← Dx, and ← D* x, of pairs x.
template <class S> void urnn_leave(const UrnnPhases<S>& D, const S* pairs, S* column);
template <class S> void urnn_leave_adjoint(const UrnnPhases<S>& D, const S* pairs, S* column);
/// pairs ← D pairs, and ← D* pairs.
template <class S> void urnn_turn(const UrnnPhases<S>& D, S* pairs);
template <class S> void urnn_turn_adjoint(const UrnnPhases<S>& D, S* pairs);
/// total_k += Im(g_k conj(x_k)) of pairs: θ̄ from both sides of D, before it or behind it.
template <class S> void urnn_add_phases(Index n, const S* x, const S* g, S* total);

/// h ← h − αv with α = 2vᴴh/‖v‖², which is returned.
template <class S> UrnnCoefficient<S> urnn_reflect(const UrnnReflection<S>& R, S* h);
/// For the h that entered and the α of it: sum −= conj(α) g + conj(β) h, g ← g − βv, where β = 2vᴴg/‖v‖².
template <class S> void urnn_pull_back(const UrnnReflection<S>& R, const S* h, UrnnCoefficient<S> alpha, S* g, S* sum);

}  // namespace stiefel
