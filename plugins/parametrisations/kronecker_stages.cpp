// Kronecker products with factors of any size per SIMD target, entry by entry.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "parametrisations/kronecker_stages.cpp"
// Vectors whose size is unknown to the compiler cannot be array elements; SSSE3 without SSE4 hardly exists.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before this one.
#include <hwy/highway.h>

#include "kronecker_field-inl.hpp"
#include "kronecker_stages.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {

/// body(field, j) for j in steps of a vector, then of one number.
template <bool complex, class S, class Body> HWY_INLINE void for_each(Index M, Body body) {
  const hn::ScalableTag<S> d;
  const hn::CappedTag<S, 1> one;
  const Index lanes = Index(hn::Lanes(d));
  Index j = 0;
  for (; j + lanes <= M; j += lanes) body(Field<decltype(d), complex>{d}, j);
  for (; j < M; ++j) body(Field<decltype(one), complex>{one}, j);
}

/// Numbers j, j + 1, … of index p of a stage's result lie P apart.
template <class F, class N, class S>
HWY_INLINE void scatter(const F& f, const N& x, const Parts<S>& out, Index j, Index P, Index p, bool complex) {
  constexpr Index lanes = Index(hn::MaxLanes(decltype(f.d)()));
  HWY_ALIGN S re[lanes], im[lanes];
  hn::Store(x.re, f.d, re);
  hn::Store(x.im, f.d, im);
  for (Index k = 0; k < lanes; ++k) out.re[(j + k) * P + p] = re[k];
  for (Index k = 0; complex && k < lanes; ++k) out.im[(j + k) * P + p] = im[k];
}
template <class F, class S>
HWY_INLINE auto gather(const F& f, const Parts<const S>& in, Index j, Index P, Index p, bool complex) {
  constexpr Index lanes = Index(hn::MaxLanes(decltype(f.d)()));
  HWY_ALIGN S re[lanes], im[lanes] = {};
  for (Index k = 0; k < lanes; ++k) re[k] = in.re[(j + k) * P + p];
  for (Index k = 0; complex && k < lanes; ++k) im[k] = in.im[(j + k) * P + p];
  auto x = f.zero();
  x.re = hn::Load(f.d, re);
  x.im = hn::Load(f.d, im);
  return x;
}

template <bool complex, class S>
void stage(const KroneckerFactor<S>& factor, Index M, const Parts<const S>& in, const Parts<S>& out) {
  const auto [P, Q, W] = factor;
  for (Index p = 0; p < P; ++p)
    for_each<complex, S>(M, [&, P = P, Q = Q, &W = W](auto f, Index j) HWY_ATTR {
      auto sum = f.zero();
      for (Index q = 0; q < Q; ++q) sum = f.add(sum, f.constant(W, p * Q + q), f.load(in, q * M + j));
      scatter(f, sum, out, j, P, p, complex);
    });
}

template <bool complex, class S>
void adjoint(const KroneckerFactor<S>& factor, Index M, const Parts<const S>& dout, const Parts<S>& din) {
  const auto [P, Q, W] = factor;
  for (Index p = 0; p < P; ++p)
    for_each<complex, S>(M, [&, P = P, Q = Q, &W = W](auto f, Index j) HWY_ATTR {
      const auto g = gather(f, dout, j, P, p, complex);
      for (Index q = 0; q < Q; ++q)
        f.store(f.add_conjugate(p == 0 ? f.zero() : f.load(din, q * M + j), f.constant(W, p * Q + q), g), din,
                q * M + j);
    });
}

template <bool complex, class S>
void gradient(const KroneckerFactor<S>& factor, Index M, const Parts<const S>& in, const Parts<const S>& dout, S* dW) {
  const auto [P, Q, W] = factor;
  constexpr Index L = kronecker_lanes<S>;
  const Parts<S> sums{dW, dW + P * Q * L};
  for (Index p = 0; p < P; ++p)
    for_each<complex, S>(M, [&, P = P, Q = Q](auto f, Index j) HWY_ATTR {
      const auto g = gather(f, dout, j, P, p, complex);
      for (Index q = 0; q < Q; ++q) {
        const Index entry = (p * Q + q) * L;
        f.store(f.add_conjugate(f.load(sums, entry), f.load(in, q * M + j), g), sums, entry);
      }
    });
}

template <class S> void stage_of(const KroneckerFactor<S>& factor, Index M, Parts<const S> in, Parts<S> out) {
  in.im ? stage<true>(factor, M, in, out) : stage<false>(factor, M, in, out);
}
template <class S> void adjoint_of(const KroneckerFactor<S>& factor, Index M, Parts<const S> dout, Parts<S> din) {
  dout.im ? adjoint<true>(factor, M, dout, din) : adjoint<false>(factor, M, dout, din);
}
template <class S> void pullback_of(const KroneckerFactor<S>& factor, Index M, Parts<const S> in, Parts<const S> dout,
                                    Parts<S> din, S* dW) {
  dout.im ? gradient<true>(factor, M, in, dout, dW) : gradient<false>(factor, M, in, dout, dW);
  if (din.re) adjoint_of(factor, M, dout, din);
}

#define STIEFEL_FOR(S)                                                                                               \
  void stage_##S(const KroneckerFactor<S>& factor, Index M, Parts<const S> in, Parts<S> out) {                       \
    stage_of(factor, M, in, out);                                                                                    \
  }                                                                                                                  \
  void adjoint_##S(const KroneckerFactor<S>& factor, Index M, Parts<const S> dout, Parts<S> din) {                   \
    adjoint_of(factor, M, dout, din);                                                                                \
  }                                                                                                                  \
  void pullback_##S(const KroneckerFactor<S>& factor, Index M, Parts<const S> in, Parts<const S> dout, Parts<S> din, \
                    S* dW) {                                                                                         \
    pullback_of(factor, M, in, dout, din, dW);                                                                       \
  }
STIEFEL_FOR(float)
STIEFEL_FOR(double)
#undef STIEFEL_FOR

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

#define STIEFEL_DISPATCH(S)                                                                                          \
  HWY_EXPORT(stage_##S);                                                                                             \
  HWY_EXPORT(adjoint_##S);                                                                                           \
  HWY_EXPORT(pullback_##S);                                                                                          \
  template <> void kronecker_stage(const KroneckerFactor<S>& factor, Index M, Parts<const S> in, Parts<S> out) {     \
    HWY_DYNAMIC_DISPATCH(stage_##S)(factor, M, in, out);                                                             \
  }                                                                                                                  \
  template <> void kronecker_adjoint(const KroneckerFactor<S>& factor, Index M, Parts<const S> dout, Parts<S> din) { \
    HWY_DYNAMIC_DISPATCH(adjoint_##S)(factor, M, dout, din);                                                         \
  }                                                                                                                  \
  template <> void kronecker_pullback(const KroneckerFactor<S>& factor, Index M, Parts<const S> in,                  \
                                      Parts<const S> dout, Parts<S> din, S* dW) {                                    \
    HWY_DYNAMIC_DISPATCH(pullback_##S)(factor, M, in, dout, din, dW);                                                \
  }
STIEFEL_DISPATCH(float)
STIEFEL_DISPATCH(double)

}  // namespace stiefel
#endif
