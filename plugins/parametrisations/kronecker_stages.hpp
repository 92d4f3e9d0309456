/// One factor of a Kronecker product applied to one column, by the SIMD target that stiefel::product_target() names.
///
/// The slowest index q of the operand is contracted with the factor and the result becomes the fastest index:
///
///   out[j·P + p] = Σ_q W(p, q) in[q·M + j]        j = 0 … M − 1
///
/// so that every stage reads contiguous numbers and, after the last factor, all indices are back in their order.
#pragma once

#include <stiefel/matrix.hpp>

namespace stiefel {

/// Complex numbers as two arrays; a real operand has no `im`.
template <class S> struct Parts {
  S* re = nullptr;
  S* im = nullptr;
  operator Parts<const S>() const requires(!std::is_const_v<S>) { return {re, im}; }
};

/// P × Q, by rows.
template <class S> struct KroneckerFactor {
  Index P = 0, Q = 0;
  Parts<const S> W;
};

/// Partial sums of each entry of a gradient: lane k adds up every 16th product (float) or every 8th (double).
template <class S> constexpr Index kronecker_lanes = 64 / Index(sizeof(S));

template <class S> void kronecker_stage(const KroneckerFactor<S>& factor, Index M, Parts<const S> in, Parts<S> out);

/// Pullback of a stage: dW(p, q) += Σ_j dout[j·P + p]·conj(in[q·M + j]) and, unless `din.re` is null,
/// din[q·M + j] = Σ_p conj(W(p, q)) dout[j·P + p]. `dW` has kronecker_lanes numbers for each entry, by rows, all Re
/// before all Im.
template <class S> void kronecker_pullback(const KroneckerFactor<S>& factor, Index M, Parts<const S> in,
                                           Parts<const S> dout, Parts<S> din, S* dW);

/// din alone.
template <class S> void kronecker_adjoint(const KroneckerFactor<S>& factor, Index M, Parts<const S> dout, Parts<S> din);

}  // namespace stiefel
