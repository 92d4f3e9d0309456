// The uRNN's factors per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "parametrisations/urnn_columns.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before this one.
#include <hwy/highway.h>

#include "urnn_columns.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V> struct Number { V re, im; };

template <class D, class S> HWY_INLINE auto load(D d, const S* x, Index n, Index k) {
  return Number<hn::Vec<D>>{hn::LoadU(d, x + k), hn::LoadU(d, x + n + k)};
}
template <class D, class S, class V> HWY_INLINE void store(D d, const Number<V>& y, S* to, Index n, Index k) {
  hn::StoreU(y.re, d, to + k);
  hn::StoreU(y.im, d, to + n + k);
}

/// body(d, k) for k in steps of a vector, then of one number.
template <class S, class Body> HWY_INLINE void for_each(Index count, Body body) {
  const hn::ScalableTag<S> d;
  const hn::CappedTag<S, 1> one;
  const Index lanes = Index(hn::Lanes(d));
  Index k = 0;
  for (; k + lanes <= count; k += lanes) body(d, k);
  for (; k < count; ++k) body(one, k);
}

template <bool Adjoint, class S> HWY_INLINE void multiply(const UrnnPhases<S>& D, const S* from, S* to) {
  const Index n = D.c.size();
  for_each<S>(n, [&](auto d, Index k) HWY_ATTR {
    const auto c = hn::LoadU(d, D.c.data() + k), s = hn::LoadU(d, D.s.data() + k);
    const auto x = load(d, from, n, k);
    auto y = x;
    y.re = Adjoint ? hn::MulAdd(c, x.re, hn::Mul(s, x.im)) : hn::NegMulAdd(s, x.im, hn::Mul(c, x.re));
    y.im = Adjoint ? hn::NegMulAdd(s, x.re, hn::Mul(c, x.im)) : hn::MulAdd(c, x.im, hn::Mul(s, x.re));
    store(d, y, to, n, k);
  });
}

template <class S> HWY_INLINE void add_phases(Index n, const S* x_column, const S* g_column, S* total) {
  for_each<S>(n, [&](auto d, Index k) HWY_ATTR {
    const auto x = load(d, x_column, n, k), g = load(d, g_column, n, k);
    const auto sum = hn::LoadU(d, total + k);
    hn::StoreU(hn::NegMulAdd(g.re, x.im, hn::MulAdd(g.im, x.re, sum)), d, total + k);
  });
}

/// Two inner products of h, each in two chains of sums.
template <class S> HWY_INLINE UrnnCoefficient<S> coefficient(const UrnnReflection<S>& R, const S* h) {
  const hn::ScalableTag<S> d;
  const Index lanes = Index(hn::Lanes(d)), count = R.v.size();
  const S *v = R.v.data(), *iv = R.iv.data();
  auto re0 = hn::Zero(d), re1 = re0, im0 = re0, im1 = re0;
  Index k = 0;
  for (; k + 2 * lanes <= count; k += 2 * lanes) {
    const auto h0 = hn::LoadU(d, h + k), h1 = hn::LoadU(d, h + k + lanes);
    re0 = hn::MulAdd(hn::LoadU(d, v + k), h0, re0);
    re1 = hn::MulAdd(hn::LoadU(d, v + k + lanes), h1, re1);
    im0 = hn::MulAdd(hn::LoadU(d, iv + k), h0, im0);
    im1 = hn::MulAdd(hn::LoadU(d, iv + k + lanes), h1, im1);
  }
  S re = hn::GetLane(hn::SumOfLanes(d, hn::Add(re0, re1))), im = hn::GetLane(hn::SumOfLanes(d, hn::Add(im0, im1)));
  for (; k < count; ++k) {
    re += v[k] * h[k];
    im += iv[k] * h[k];
  }
  return {R.scale * re, R.scale * im};
}

template <class S> HWY_INLINE void subtract(const UrnnReflection<S>& R, UrnnCoefficient<S> alpha, S* h) {
  for_each<S>(R.v.size(), [&](auto d, Index k) HWY_ATTR {
    const auto re = hn::Set(d, alpha.re), im = hn::Set(d, alpha.im);
    const auto v = hn::LoadU(d, R.v.data() + k), iv = hn::LoadU(d, R.iv.data() + k);
    hn::StoreU(hn::NegMulAdd(im, iv, hn::NegMulAdd(re, v, hn::LoadU(d, h + k))), d, h + k);
  });
}

template <class S> HWY_INLINE UrnnCoefficient<S> reflect(const UrnnReflection<S>& R, S* h) {
  const auto alpha = coefficient(R, h);
  subtract(R, alpha, h);
  return alpha;
}

template <class S> HWY_INLINE void pull_back(const UrnnReflection<S>& R, const S* h_column, UrnnCoefficient<S> alpha,
                                             S* g_column, S* sum_column) {
  const Index n = R.v.size() / 2;
  const auto beta = coefficient(R, g_column);
  for_each<S>(n, [&](auto d, Index k) HWY_ATTR {
    const auto a_re = hn::Set(d, alpha.re), a_im = hn::Set(d, alpha.im), b_re = hn::Set(d, beta.re),
               b_im = hn::Set(d, beta.im);
    const auto h = load(d, h_column, n, k);
    const auto g = load(d, g_column, n, k);
    auto sum = load(d, sum_column, n, k);
    sum.re = hn::NegMulAdd(a_im, g.im, hn::NegMulAdd(a_re, g.re, sum.re));
    sum.im = hn::MulAdd(a_im, g.re, hn::NegMulAdd(a_re, g.im, sum.im));
    sum.re = hn::NegMulAdd(b_im, h.im, hn::NegMulAdd(b_re, h.re, sum.re));
    sum.im = hn::MulAdd(b_im, h.re, hn::NegMulAdd(b_re, h.im, sum.im));
    store(d, sum, sum_column, n, k);
  });
  subtract(R, beta, g_column);
}

#define STIEFEL_FOR(S)                                                                                 \
  void turn_##S(const UrnnPhases<S>& D, const S* x, S* y) { multiply<false>(D, x, y); }                \
  void turn_adjoint_##S(const UrnnPhases<S>& D, const S* x, S* y) { multiply<true>(D, x, y); }         \
  void add_phases_##S(Index n, const S* x, const S* g, S* total) { add_phases(n, x, g, total); }       \
  UrnnCoefficient<S> reflect_##S(const UrnnReflection<S>& R, S* h) { return reflect(R, h); }           \
  void pull_back_##S(const UrnnReflection<S>& R, const S* h, UrnnCoefficient<S> alpha, S* g, S* sum) { \
    pull_back(R, h, alpha, g, sum);                                                                    \
  }
STIEFEL_FOR(float)
STIEFEL_FOR(double)
#undef STIEFEL_FOR

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

#define STIEFEL_DISPATCH(S)                                                                                         \
  HWY_EXPORT(turn_##S);                                                                                             \
  HWY_EXPORT(turn_adjoint_##S);                                                                                     \
  HWY_EXPORT(add_phases_##S);                                                                                       \
  HWY_EXPORT(reflect_##S);                                                                                          \
  HWY_EXPORT(pull_back_##S);                                                                                        \
  template <> void urnn_turn(const UrnnPhases<S>& D, const S* x, S* y) { HWY_DYNAMIC_DISPATCH(turn_##S)(D, x, y); } \
  template <> void urnn_turn_adjoint(const UrnnPhases<S>& D, const S* x, S* y) {                                    \
    HWY_DYNAMIC_DISPATCH(turn_adjoint_##S)(D, x, y);                                                                \
  }                                                                                                                 \
  template <> void urnn_add_phases(Index n, const S* x, const S* g, S* total) {                                     \
    HWY_DYNAMIC_DISPATCH(add_phases_##S)(n, x, g, total);                                                           \
  }                                                                                                                 \
  template <> UrnnCoefficient<S> urnn_reflect(const UrnnReflection<S>& R, S* h) {                                   \
    return HWY_DYNAMIC_DISPATCH(reflect_##S)(R, h);                                                                 \
  }                                                                                                                 \
  template <> void urnn_pull_back(const UrnnReflection<S>& R, const S* h, UrnnCoefficient<S> alpha, S* g, S* sum) { \
    HWY_DYNAMIC_DISPATCH(pull_back_##S)(R, h, alpha, g, sum);                                                       \
  }
STIEFEL_DISPATCH(float)
STIEFEL_DISPATCH(double)

}  // namespace stiefel
#endif
