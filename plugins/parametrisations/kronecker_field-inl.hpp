// Arithmetic of the kernels of Kronecker products, compiled once for each SIMD target.
#if defined(STIEFEL_KRONECKER_FIELD) == defined(HWY_TARGET_TOGGLE)
#ifdef STIEFEL_KRONECKER_FIELD
#undef STIEFEL_KRONECKER_FIELD
#else
#define STIEFEL_KRONECKER_FIELD
#endif

#include <hwy/highway.h>

#include "kronecker_numbers.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A complex number, or a real one whose `im` nobody reads, in vectors or scalars. An implicit constructor would lack
/// the target's instructions and could not call that of a NEON vector.
template <class V> struct Number {
  V re, im;
  Number() {}
  Number(V re, V im) : re(re), im(im) {}
};

/// Arithmetic of vectors D; the scalar rest uses vectors of one lane.
template <class D, bool complex> struct Field {
  using S = hn::TFromD<D>;
  using V = hn::Vec<D>;
  using N = Number<V>;
  D d;

  HWY_INLINE N zero() const { return {hn::Zero(d), hn::Zero(d)}; }
  HWY_INLINE N constant(const Parts<const S>& a, Index i) const {
    return {hn::Set(d, a.re[i]), complex ? hn::Set(d, a.im[i]) : hn::Zero(d)};
  }
  template <class T> HWY_INLINE N load(const Parts<T>& a, Index i) const {
    return {hn::LoadU(d, a.re + i), complex ? hn::LoadU(d, a.im + i) : hn::Zero(d)};
  }
  HWY_INLINE void store(const N& x, const Parts<S>& a, Index i) const {
    hn::StoreU(x.re, d, a.re + i);
    if constexpr (complex) hn::StoreU(x.im, d, a.im + i);
  }
  HWY_INLINE N sum(const N& a, const N& b) const { return {hn::Add(a.re, b.re), complex ? hn::Add(a.im, b.im) : a.im}; }
  /// sum + a·b
  HWY_INLINE N add(const N& sum, const N& a, const N& b) const {
    if constexpr (!complex) return {hn::MulAdd(a.re, b.re, sum.re), sum.im};
    return {hn::NegMulAdd(a.im, b.im, hn::MulAdd(a.re, b.re, sum.re)),
            hn::MulAdd(a.im, b.re, hn::MulAdd(a.re, b.im, sum.im))};
  }
  /// sum + conj(a)·b
  HWY_INLINE N add_conjugate(const N& sum, const N& a, const N& b) const {
    if constexpr (!complex) return {hn::MulAdd(a.re, b.re, sum.re), sum.im};
    return {hn::MulAdd(a.im, b.im, hn::MulAdd(a.re, b.re, sum.re)),
            hn::NegMulAdd(a.im, b.re, hn::MulAdd(a.re, b.im, sum.im))};
  }
};

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
