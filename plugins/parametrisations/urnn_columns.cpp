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

/// Where a kernel reads and writes: n numbers Re over n numbers Im, or pairs.
template <class S> struct Column {
  S* data;
  Index n;
  template <class D> HWY_INLINE auto load(D d, Index k) const {
    return Number<hn::Vec<D>>{hn::LoadU(d, data + k), hn::LoadU(d, data + n + k)};
  }
  template <class D, class V> HWY_INLINE void store(D d, Index k, const Number<V>& x) const {
    hn::StoreU(x.re, d, data + k);
    hn::StoreU(x.im, d, data + n + k);
  }
};
template <class S> struct Pairs {
  S* data;
  template <class D> HWY_INLINE auto load(D d, Index k) const {
    hn::Vec<D> re, im;
    hn::LoadInterleaved2(d, data + 2 * k, re, im);
    return Number<hn::Vec<D>>{re, im};
  }
  template <class D, class V> HWY_INLINE void store(D d, Index k, const Number<V>& x) const {
    hn::StoreInterleaved2(x.re, x.im, d, data + 2 * k);
  }
};

/// body(d, k) for k in steps of a vector, then of one number.
template <class S, class Body> HWY_INLINE void for_each(Index count, Body body) {
  const hn::ScalableTag<S> d;
  const hn::CappedTag<S, 1> one;
  const Index lanes = Index(hn::Lanes(d));
  Index k = 0;
  for (; k + lanes <= count; k += lanes) body(d, k);
  for (; k < count; ++k) body(one, k);
}

template <bool Adjoint, class S, class From, class To>
HWY_INLINE void multiply(const UrnnPhases<S>& D, From from, To to) {
  for_each<S>(D.c.size(), [&](auto d, Index k) HWY_ATTR {
    const auto c = hn::LoadU(d, D.c.data() + k), s = hn::LoadU(d, D.s.data() + k);
    const auto x = from.load(d, k);
    auto y = x;
    y.re = Adjoint ? hn::MulAdd(c, x.re, hn::Mul(s, x.im)) : hn::NegMulAdd(s, x.im, hn::Mul(c, x.re));
    y.im = Adjoint ? hn::NegMulAdd(s, x.re, hn::Mul(c, x.im)) : hn::MulAdd(c, x.im, hn::Mul(s, x.re));
    to.store(d, k, y);
  });
}

template <class S> HWY_INLINE void add_phases(Index n, const S* x_pairs, const S* g_pairs, S* total) {
  for_each<S>(n, [&](auto d, Index k) HWY_ATTR {
    const auto x = Pairs<const S>{x_pairs}.load(d, k), g = Pairs<const S>{g_pairs}.load(d, k);
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

template <class S> HWY_INLINE void pull_back(const UrnnReflection<S>& R, const S* h_pairs, UrnnCoefficient<S> alpha,
                                             S* g_pairs, S* sum_pairs) {
  const auto beta = coefficient(R, g_pairs);
  for_each<S>(R.v.size() / 2, [&](auto d, Index k) HWY_ATTR {
    const auto a_re = hn::Set(d, alpha.re), a_im = hn::Set(d, alpha.im), b_re = hn::Set(d, beta.re),
               b_im = hn::Set(d, beta.im);
    const auto h = Pairs<const S>{h_pairs}.load(d, k);
    const auto g = Pairs<S>{g_pairs}.load(d, k);
    auto sum = Pairs<S>{sum_pairs}.load(d, k);
    sum.re = hn::NegMulAdd(a_im, g.im, hn::NegMulAdd(a_re, g.re, sum.re));
    sum.im = hn::MulAdd(a_im, g.re, hn::NegMulAdd(a_re, g.im, sum.im));
    sum.re = hn::NegMulAdd(b_im, h.im, hn::NegMulAdd(b_re, h.re, sum.re));
    sum.im = hn::MulAdd(b_im, h.re, hn::NegMulAdd(b_re, h.im, sum.im));
    Pairs<S>{sum_pairs}.store(d, k, sum);
  });
  subtract(R, beta, g_pairs);
}

#define STIEFEL_FOR(S)                                                                                 \
  void enter_##S(const UrnnPhases<S>& D, const S* x, S* y) {                                           \
    multiply<false>(D, Column<const S>{x, D.c.size()}, Pairs<S>{y});                                   \
  }                                                                                                    \
  void enter_adjoint_##S(const UrnnPhases<S>& D, const S* x, S* y) {                                   \
    multiply<true>(D, Column<const S>{x, D.c.size()}, Pairs<S>{y});                                    \
  }                                                                                                    \
  void leave_##S(const UrnnPhases<S>& D, const S* x, S* y) {                                           \
    multiply<false>(D, Pairs<const S>{x}, Column<S>{y, D.c.size()});                                   \
  }                                                                                                    \
  void leave_adjoint_##S(const UrnnPhases<S>& D, const S* x, S* y) {                                   \
    multiply<true>(D, Pairs<const S>{x}, Column<S>{y, D.c.size()});                                    \
  }                                                                                                    \
  void turn_##S(const UrnnPhases<S>& D, S* x) { multiply<false>(D, Pairs<S>{x}, Pairs<S>{x}); }        \
  void turn_adjoint_##S(const UrnnPhases<S>& D, S* x) { multiply<true>(D, Pairs<S>{x}, Pairs<S>{x}); } \
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

#define STIEFEL_PHASES(S, NAME, FROM) \
  HWY_EXPORT(NAME##_##S);             \
  template <> void urnn_##NAME(const UrnnPhases<S>& D, FROM x, S* y) { HWY_DYNAMIC_DISPATCH(NAME##_##S)(D, x, y); }
#define STIEFEL_DISPATCH(S)                                                                                          \
  STIEFEL_PHASES(S, enter, const S*)                                                                                 \
  STIEFEL_PHASES(S, enter_adjoint, const S*)                                                                         \
  STIEFEL_PHASES(S, leave, const S*)                                                                                 \
  STIEFEL_PHASES(S, leave_adjoint, const S*)                                                                         \
  HWY_EXPORT(turn_##S);                                                                                              \
  HWY_EXPORT(turn_adjoint_##S);                                                                                      \
  HWY_EXPORT(add_phases_##S);                                                                                        \
  HWY_EXPORT(reflect_##S);                                                                                           \
  HWY_EXPORT(pull_back_##S);                                                                                         \
  template <> void urnn_turn(const UrnnPhases<S>& D, S* x) { HWY_DYNAMIC_DISPATCH(turn_##S)(D, x); }                 \
  template <> void urnn_turn_adjoint(const UrnnPhases<S>& D, S* x) { HWY_DYNAMIC_DISPATCH(turn_adjoint_##S)(D, x); } \
  template <> void urnn_add_phases(Index n, const S* x, const S* g, S* total) {                                      \
    HWY_DYNAMIC_DISPATCH(add_phases_##S)(n, x, g, total);                                                            \
  }                                                                                                                  \
  template <> UrnnCoefficient<S> urnn_reflect(const UrnnReflection<S>& R, S* h) {                                    \
    return HWY_DYNAMIC_DISPATCH(reflect_##S)(R, h);                                                                  \
  }                                                                                                                  \
  template <> void urnn_pull_back(const UrnnReflection<S>& R, const S* h, UrnnCoefficient<S> alpha, S* g, S* sum) {  \
    HWY_DYNAMIC_DISPATCH(pull_back_##S)(R, h, alpha, g, sum);                                                        \
  }
STIEFEL_DISPATCH(float)
STIEFEL_DISPATCH(double)

}  // namespace stiefel
#endif
