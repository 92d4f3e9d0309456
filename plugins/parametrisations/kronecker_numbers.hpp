/// What the kernels of Kronecker products share.
#pragma once

#include <stiefel/matrix.hpp>

namespace stiefel {

/// Complex numbers as two arrays; a real operand has no `im`.
template <class S> struct Parts {
  S* re = nullptr;
  S* im = nullptr;
  operator Parts<const S>() const requires(!std::is_const_v<S>) { return {re, im}; }
};

/// Partial sums of each entry of a gradient: lane k adds up every 16th product (float) or every 8th (double).
template <class S> constexpr Index kronecker_lanes = 64 / Index(sizeof(S));

}  // namespace stiefel
