/// Kronecker products applied to columns, by the SIMD target that stiefel::product_target() names.
///
/// Factors of any size are applied one by one. The slowest index q of the operand is contracted with the factor, and the
/// result becomes the fastest index:
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

/// A Kronecker product of 2 × 2 factors, size × size. The pairs x_0, x_1 that factor k maps to W_k x lie
/// size / 2^(k + 1) apart, so that every factor works in place.
template <class S> struct Butterflies {
  bool complex = false;
  bool from_last = false;      ///< the last factor is applied first, as in the adjoint map
  Index size = 0, count = 0;   ///< size = 2^count, at least kronecker_lanes
  const S* factors = nullptr;  ///< `numbers` of each: Re by rows, Im by rows, and what lanes multiply x_0 and x_1 by

  static constexpr Index numbers = 8 + 4 * kronecker_lanes<S>;
  const S* factor(Index k) const { return factors + numbers * k; }
};

/// Y = W·X, Re over Im.
template <class S> void apply_butterflies(const Butterflies<S>& map, CMat<S> X, Mat<S> Y);

/// Each factor's gradient from the columns of X and dY, as kronecker_pullback() writes it, one factor after the other in
/// `sums`, which hold zeros before. `memory` has room for `count` columns.
template <class S> void pull_back_butterflies(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X,
                                              CMat<S> dY, S* memory, S* sums);

}  // namespace stiefel
