/// Kronecker products with factors of any size, by the SIMD target that stiefel::product_target() names.
///
/// Factors are applied one by one. The slowest index q of the operand is contracted with the factor, and the
/// result becomes the fastest index:
///
///   out[j·P + p] = Σ_q W(p, q) in[q·M + j]        j = 0 … M − 1
///
/// so that every stage reads contiguous numbers and, after the last factor, all indices are back in their order.
#pragma once

#include "kronecker_numbers.hpp"

namespace stiefel {

/// P × Q, by rows.
template <class S> struct KroneckerFactor {
  Index P = 0, Q = 0;
  Parts<const S> W;
};

template <class S> void kronecker_stage(const KroneckerFactor<S>& factor, Index M, Parts<const S> in, Parts<S> out);

/// Pullback of a stage: dW(p, q) += Σ_j dout[j·P + p]·conj(in[q·M + j]) and, unless `din.re` is null,
/// din[q·M + j] = Σ_p conj(W(p, q)) dout[j·P + p]. `dW` has kronecker_lanes numbers for each entry, by rows, all Re
/// before all Im.
template <class S> void kronecker_pullback(const KroneckerFactor<S>& factor, Index M, Parts<const S> in,
                                           Parts<const S> dout, Parts<S> din, S* dW);

/// din alone.
template <class S> void kronecker_adjoint(const KroneckerFactor<S>& factor, Index M, Parts<const S> dout, Parts<S> din);

}  // namespace stiefel
