/// Kronecker products of 2 × 2 factors alone, in place, by the SIMD target that stiefel::product_target() names.
#pragma once

#include "kronecker_numbers.hpp"

namespace stiefel {

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

/// Y = W·X, Re over Im, or, where `memory` has room for a column, Y += W·X.
template <class S> void apply_butterflies(const Butterflies<S>& map, CMat<S> X, Mat<S> Y, S* memory);

/// Each factor's gradient from the columns of X and dY, as kronecker_pullback() writes it, one factor after the other in
/// `sums`, which hold zeros before. `memory` has room for `count` columns.
template <class S> void pull_back_butterflies(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X,
                                              CMat<S> dY, S* memory, S* sums);

}  // namespace stiefel
