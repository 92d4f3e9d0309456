// Stages of Kronecker products per SIMD target: 2 × 2 factors in registers, others entry by entry.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "parametrisations/kronecker_stages.cpp"
// Vectors whose size is unknown to the compiler cannot be array elements; SSSE3 without SSE4 hardly exists.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before this one.
#include <hwy/highway.h>

#include "kronecker_stages.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A complex number, or a real one whose `im` nobody reads, in vectors or scalars.
template <class V> struct Number { V re, im; };

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

/// body(field, j) for j in steps of a vector, then of one number.
template <bool complex, class S, class Body> HWY_INLINE void for_each(Index M, Body body) {
  const hn::ScalableTag<S> d;
  const hn::CappedTag<S, 1> one;
  const Index lanes = Index(hn::Lanes(d));
  Index j = 0;
  for (; j + lanes <= M; j += lanes) body(Field<decltype(d), complex>{d}, j);
  for (; j < M; ++j) body(Field<decltype(one), complex>{one}, j);
}

/// Writes x0, x1 to places 2j and 2j + 1 of each lane's pair, and reads them.
template <class F, class N, class S>
HWY_INLINE void store_pair(const F& f, const N& x0, const N& x1, const Parts<S>& out, Index j, bool complex) {
  if constexpr (hn::MaxLanes(decltype(f.d)()) == 1) {
    f.store(x0, out, 2 * j);
    f.store(x1, out, 2 * j + 1);
  } else {
    hn::StoreInterleaved2(x0.re, x1.re, f.d, out.re + 2 * j);
    if (complex) hn::StoreInterleaved2(x0.im, x1.im, f.d, out.im + 2 * j);
  }
}
template <class F, class N, class S>
HWY_INLINE void load_pair(const F& f, const Parts<const S>& in, Index j, N& x0, N& x1, bool complex) {
  if constexpr (hn::MaxLanes(decltype(f.d)()) == 1) {
    x0 = f.load(in, 2 * j);
    x1 = f.load(in, 2 * j + 1);
  } else {
    x0 = x1 = f.zero();
    hn::LoadInterleaved2(f.d, in.re + 2 * j, x0.re, x1.re);
    if (complex) hn::LoadInterleaved2(f.d, in.im + 2 * j, x0.im, x1.im);
  }
}

template <bool complex, class S>
HWY_INLINE void stage_2(const Parts<const S>& W, Index M, const Parts<const S>& in, const Parts<S>& out) {
  for_each<complex, S>(M, [&](auto f, Index j) HWY_ATTR {
    const auto x0 = f.load(in, j), x1 = f.load(in, M + j);
    const auto y0 = f.add(f.add(f.zero(), f.constant(W, 0), x0), f.constant(W, 1), x1);
    const auto y1 = f.add(f.add(f.zero(), f.constant(W, 2), x0), f.constant(W, 3), x1);
    store_pair(f, y0, y1, out, j, complex);
  });
}

template <bool complex, class S>
HWY_INLINE void adjoint_2(const Parts<const S>& W, Index M, const Parts<const S>& dout, const Parts<S>& din) {
  for_each<complex, S>(M, [&](auto f, Index j) HWY_ATTR {
    auto g0 = f.zero(), g1 = f.zero();
    load_pair(f, dout, j, g0, g1, complex);
    f.store(f.add_conjugate(f.add_conjugate(f.zero(), f.constant(W, 0), g0), f.constant(W, 2), g1), din, j);
    f.store(f.add_conjugate(f.add_conjugate(f.zero(), f.constant(W, 1), g0), f.constant(W, 3), g1), din, M + j);
  });
}

/// The entries' partial sums stay in registers over the whole column.
template <bool complex, class S>
HWY_INLINE void gradient_2(Index M, const Parts<const S>& in, const Parts<const S>& dout, S* dW) {
  constexpr Index L = kronecker_lanes<S>;
  const Parts<S> sums{dW, dW + 4 * L};
  const hn::ScalableTag<S> d;
  const Field<decltype(d), complex> f{d};
  const Index lanes = Index(hn::Lanes(d));
  auto s00 = f.load(sums, 0), s01 = f.load(sums, L), s10 = f.load(sums, 2 * L), s11 = f.load(sums, 3 * L);
  Index j = 0;
  for (; j + lanes <= M; j += lanes) {
    auto g0 = f.zero(), g1 = f.zero();
    load_pair(f, dout, j, g0, g1, complex);
    const auto x0 = f.load(in, j), x1 = f.load(in, M + j);
    s00 = f.add_conjugate(s00, x0, g0);
    s01 = f.add_conjugate(s01, x1, g0);
    s10 = f.add_conjugate(s10, x0, g1);
    s11 = f.add_conjugate(s11, x1, g1);
  }
  f.store(s00, sums, 0);
  f.store(s01, sums, L);
  f.store(s10, sums, 2 * L);
  f.store(s11, sums, 3 * L);
  const hn::CappedTag<S, 1> single;
  const Field<decltype(single), complex> one{single};
  for (; j < M; ++j)
    for (Index p = 0; p < 2; ++p)
      for (Index q = 0; q < 2; ++q) {
        const Index entry = (2 * p + q) * L;
        one.store(one.add_conjugate(one.load(sums, entry), one.load(in, q * M + j), one.load(dout, 2 * j + p)), sums,
                  entry);
      }
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
  if (P == 2 && Q == 2) return stage_2<complex>(W, M, in, out);
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
  if (P == 2 && Q == 2) return adjoint_2<complex>(W, M, dout, din);
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
  if (P == 2 && Q == 2) return gradient_2<complex>(M, in, dout, dW);
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
