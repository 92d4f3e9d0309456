// Stockham's transform: each pass reads one column and writes another, and the results come out in order. With r the radix,
// s the stride, p = 0 … rest − 1, and q = 0 … s − 1,
//
//   y[q + s (r p + j)] = e^{−2πi pj/(r·rest)} Σ_k x[q + s (p + rest·k)] e^{−2πi jk/r}
//
// A vector holds consecutive q, or consecutive p in a first pass, whose stride is 1. Vectors of p must be interleaved as they
// are stored, which is fast for radix 2, 4 and 8: these passes come first.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "parametrisations/fourier.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before this one.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>

#include "fourier.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V> struct Number {
  V re, im;
  HWY_INLINE Number operator+(const Number& y) const { return {hn::Add(re, y.re), hn::Add(im, y.im)}; }
  HWY_INLINE Number operator-(const Number& y) const { return {hn::Sub(re, y.re), hn::Sub(im, y.im)}; }
  HWY_INLINE Number operator*(const Number& y) const {
    return {hn::NegMulAdd(im, y.im, hn::Mul(re, y.re)), hn::MulAdd(im, y.re, hn::Mul(re, y.im))};
  }
};

/// Stores the eight first numbers of all vectors, then the eight second ones. A vector has at most 32 bytes.
template <class D, class V> HWY_INLINE void store_interleaved8(D d, V (&x)[8], hn::TFromD<D>* to) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    for (Index j = 0; j < 4; ++j) {
      const V lower = hn::InterleaveLower(d, x[j], x[j + 4]), upper = hn::InterleaveUpper(d, x[j], x[j + 4]);
      constexpr bool two_blocks = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == 32;  // each of which was interleaved
      x[j] = two_blocks ? hn::ConcatLowerLower(d, upper, lower) : lower;
      x[j + 4] = two_blocks ? hn::ConcatUpperUpper(d, upper, lower) : upper;
    }
  }
#endif
  hn::StoreInterleaved4(x[0], x[1], x[2], x[3], d, to);
  hn::StoreInterleaved4(x[4], x[5], x[6], x[7], d, to + 4 * hn::Lanes(d));
}

template <class T> struct Column {
  T *re, *im;
  template <class D> HWY_INLINE Number<hn::Vec<D>> load(D d, Index k) const {
    return {hn::LoadU(d, re + k), hn::LoadU(d, im + k)};
  }
  template <class D> HWY_INLINE Number<hn::Vec<D>> repeat(D d, Index k) const {
    return {hn::Set(d, re[k]), hn::Set(d, im[k])};
  }
  template <class D, class V> HWY_INLINE void store(D d, Index k, const Number<V>& x) const {
    hn::StoreU(x.re, d, re + k);
    hn::StoreU(x.im, d, im + k);
  }
  /// The first numbers of all vectors, then the second ones.
  template <class D, class V> HWY_INLINE void interleave(D d, Index k, const Number<V> (&x)[2]) const {
    hn::StoreInterleaved2(x[0].re, x[1].re, d, re + k);
    hn::StoreInterleaved2(x[0].im, x[1].im, d, im + k);
  }
  template <class D, class V> HWY_INLINE void interleave(D d, Index k, const Number<V> (&x)[4]) const {
    hn::StoreInterleaved4(x[0].re, x[1].re, x[2].re, x[3].re, d, re + k);
    hn::StoreInterleaved4(x[0].im, x[1].im, x[2].im, x[3].im, d, im + k);
  }
  template <class D, class V> HWY_INLINE void interleave(D d, Index k, const Number<V> (&x)[8]) const {
    V reals[8], imaginaries[8];
    for (Index j = 0; j < 8; ++j) {
      reals[j] = x[j].re;
      imaginaries[j] = x[j].im;
    }
    store_interleaved8(d, reals, re + k);
    store_interleaved8(d, imaginaries, im + k);
  }
};

/// The part of X_j that is even in j, and the part that is odd, for an odd radix r: with h = (r − 1)/2,
///
///   even = a_0 + Σ_{k=1…h} cos(2πjk/r) (a_k + a_{r−k})      odd = −i Σ_{k=1…h} sin(2πjk/r) (a_k − a_{r−k})
///
/// `sum(k)` and `difference(k)` give the two parentheses.
template <class S, class D, class V, class Sum, class Difference>
HWY_INLINE void parts(D d, Index radix, Index j, const Column<const S>& roots, Sum sum, Difference difference,
                      Number<V>& even, Number<V>& odd) {
  odd = {hn::Zero(d), hn::Zero(d)};
  for (Index k = 1, root = j; k <= radix / 2; ++k, root = root + j < radix ? root + j : root + j - radix) {
    const auto c = hn::Set(d, roots.re[root]), s = hn::Set(d, roots.im[root]);
    const auto u = sum(k), v = difference(k);
    even = {hn::MulAdd(c, u.re, even.re), hn::MulAdd(c, u.im, even.im)};
    odd = {hn::MulAdd(s, v.im, odd.re), hn::NegMulAdd(s, v.re, odd.im)};
  }
}

/// X_j = Σ_k a_k e^{−2πi jk/R} in place.
template <Index R, class S, class D, class V>
HWY_INLINE void combine(D d, const Column<const S>& roots, Number<V> (&a)[R]) {
  if constexpr (R == 2) {
    const auto first = a[0];
    a[0] = first + a[1];
    a[1] = first - a[1];
  } else if constexpr (R == 4) {
    const auto s = a[0] + a[2], t = a[0] - a[2], u = a[1] + a[3], v = a[1] - a[3];
    a[0] = s + u;
    a[1] = {hn::Add(t.re, v.im), hn::Sub(t.im, v.re)};
    a[2] = s - u;
    a[3] = {hn::Sub(t.re, v.im), hn::Add(t.im, v.re)};
  } else if constexpr (R == 8) {
    Number<V> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    combine<4, S>(d, roots, even);
    combine<4, S>(d, roots, odd);
    const auto half = hn::Set(d, S(std::numbers::sqrt2 / 2));
    const auto u = odd[1], v = odd[2], w = odd[3];
    odd[1] = {hn::Mul(half, hn::Add(u.re, u.im)), hn::Mul(half, hn::Sub(u.im, u.re))};
    odd[2] = {v.im, hn::Neg(v.re)};
    odd[3] = {hn::Mul(half, hn::Sub(w.im, w.re)), hn::Neg(hn::Mul(half, hn::Add(w.re, w.im)))};
    for (Index j = 0; j < 4; ++j) {
      a[j] = even[j] + odd[j];
      a[j + 4] = even[j] - odd[j];
    }
  } else {
    Number<V> sums[R / 2 + 1], differences[R / 2 + 1];
    const auto first = a[0];
    for (Index k = 1; k <= R / 2; ++k) {
      sums[k] = a[k] + a[R - k];
      differences[k] = a[k] - a[R - k];
      a[0] = a[0] + sums[k];
    }
    for (Index j = 1; j <= R / 2; ++j) {
      Number<V> even = first, odd;
      parts<S>(
          d, R, j, roots, [&](Index k) { return sums[k]; }, [&](Index k) { return differences[k]; }, even, odd);
      a[j] = even + odd;
      a[R - j] = even - odd;
    }
  }
}

/// The arguments of a pass, by value: compilers reload what they reach by reference after each store.
template <class S> struct Way {
  Index radix, rest, stride;
  Column<const S> turns, roots;
  Column<const S> from;
  Column<S> to;
  S* work;

  HWY_INLINE Way(const typename Fourier<S>::Pass& pass, Column<const S> from, Column<S> to, S* work)
      : radix(pass.radix),
        rest(pass.rest),
        stride(pass.stride),
        turns{pass.turns.data(), pass.turns.data() + pass.turns.size() / 2},
        roots{pass.roots.data(), pass.roots.data() + pass.radix},
        from(from),
        to(to),
        work(work) {}
};

/// Vectors of p from `p` on in a first pass; returns the first p that fills no vector.
template <Index R, class S, class D> HWY_INLINE Index first_row(D d, Way<S> way, Index p) {
  const Index lanes = Index(hn::Lanes(d));
  for (; p + lanes <= way.rest; p += lanes) {
    Number<hn::Vec<D>> a[R];
    for (Index k = 0; k < R; ++k) a[k] = way.from.load(d, p + way.rest * k);
    combine<R, S>(d, way.roots, a);
    for (Index j = 1; j < R; ++j) a[j] = a[j] * way.turns.load(d, (j - 1) * way.rest + p);
    way.to.interleave(d, R * p, a);
  }
  return p;
}

/// Vectors of q from `q` on for one p; returns the first q that fills no vector.
template <Index R, class S, class D> HWY_INLINE Index row(D d, Way<S> way, Index p, Index q) {
  const Index lanes = Index(hn::Lanes(d));
  if (q + lanes > way.stride) return q;
  Number<hn::Vec<D>> turn[R];
  for (Index j = 1; j < R; ++j) turn[j] = way.turns.repeat(d, (j - 1) * way.rest + p);
  for (; q + lanes <= way.stride; q += lanes) {
    Number<hn::Vec<D>> a[R];
    for (Index k = 0; k < R; ++k) a[k] = way.from.load(d, q + way.stride * (p + way.rest * k));
    combine<R, S>(d, way.roots, a);
    way.to.store(d, q + way.stride * R * p, a[0]);
    for (Index j = 1; j < R; ++j) way.to.store(d, q + way.stride * (R * p + j), p == 0 ? a[j] : a[j] * turn[j]);
  }
  return q;
}

/// The same for a radix that the compiler does not know: a prime above 5. Sums and differences lie in `work`.
template <class S, class D> HWY_INLINE Index row_of_prime(D d, Way<S> way, Index p, Index q) {
  using V = hn::Vec<D>;
  const Index lanes = Index(hn::Lanes(d)), radix = way.radix, half = radix / 2, block = half * lanes;
  const Column<S> sums{way.work, way.work + block}, differences{way.work + 2 * block, way.work + 3 * block};
  for (; q + lanes <= way.stride; q += lanes) {
    const auto at = [&](Index k) HWY_ATTR { return way.from.load(d, q + way.stride * (p + way.rest * k)); };
    const auto put = [&](Index j, Number<V> x) HWY_ATTR {
      if (j > 0 && p > 0) x = x * way.turns.repeat(d, (j - 1) * way.rest + p);
      way.to.store(d, q + way.stride * (radix * p + j), x);
    };
    const Number<V> first = at(0);
    Number<V> all = first;
    for (Index k = 1; k <= half; ++k) {
      const Number<V> a = at(k), b = at(radix - k), sum = a + b;
      sums.store(d, (k - 1) * lanes, sum);
      differences.store(d, (k - 1) * lanes, a - b);
      all = all + sum;
    }
    put(0, all);
    for (Index j = 1; j <= half; ++j) {
      Number<V> even = first, odd;
      parts<S>(
          d, radix, j, way.roots, [&](Index k) HWY_ATTR { return sums.load(d, (k - 1) * lanes); },
          [&](Index k) HWY_ATTR { return differences.load(d, (k - 1) * lanes); }, even, odd);
      put(j, even + odd);
      put(radix - j, even - odd);
    }
  }
  return q;
}

template <Index R, class S> HWY_INLINE void pass(Way<S> way) {
  const hn::ScalableTag<S> d;
  const hn::CappedTag<S, (hn::MaxLanes(d) > 8 ? 8 : 4)> eight;
  const hn::CappedTag<S, 4> four;
  const hn::CappedTag<S, 1> one;
  if constexpr (R == 2 || R == 4 || R == 8)
    if (way.stride == 1) {
      const hn::CappedTag<S, R == 8 ? 32 / sizeof(S) : hn::MaxLanes(d)> first;
      first_row<R>(one, way, first_row<R>(first, way, 0));
      return;
    }
  for (Index p = 0; p < way.rest; ++p) {
    if constexpr (R == 0)
      row_of_prime(one, way, p, row_of_prime(four, way, p, row_of_prime(d, way, p, 0)));
    else
      row<R>(one, way, p, row<R>(four, way, p, row<R>(eight, way, p, row<R>(d, way, p, 0))));
  }
}

template <class S>
HWY_INLINE void run(std::span<const typename Fourier<S>::Pass> passes, Column<const S> in, Column<S> out, S* work) {
  if (passes.empty()) {
    out.re[0] = in.re[0];
    out.im[0] = in.im[0];
    return;
  }
  // Columns that are powers of two apart would fall into the same lines of the cache.
  const Index distance = passes[0].radix * passes[0].rest + 16;
  Column<S> buffers[2] = {{work, work + distance}, {work + 2 * distance, work + 3 * distance}};
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const Column<S> to = i + 1 < passes.size() ? buffers[i % 2] : out;
    const Way<S> way(passes[i], in, to, work + 4 * distance);
    switch (way.radix) {
      case 2:
        pass<2>(way);
        break;
      case 3:
        pass<3>(way);
        break;
      case 4:
        pass<4>(way);
        break;
      case 5:
        pass<5>(way);
        break;
      case 8:
        pass<8>(way);
        break;
      default:
        pass<0>(way);
    }
    in = {to.re, to.im};
  }
}

#define STIEFEL_FOR(S)                                                                                              \
  void run_##S(std::span<const Fourier<S>::Pass> passes, const S* re, const S* im, S* out_re, S* out_im, S* work) { \
    run<S>(passes, {re, im}, {out_re, out_im}, work);                                                               \
  }
STIEFEL_FOR(float)
STIEFEL_FOR(double)
#undef STIEFEL_FOR

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {
namespace {

constexpr Index most_lanes = 16;

/// The next factor of a number above 1. Radix 8 needs fewer passes; it is for float alone, since with AVX2 it is no faster in
/// double. 16 is 4 · 4, as two passes are needed anyway.
template <class S> Index factor(Index number) {
  if (sizeof(S) == 4 && number % 8 == 0 && number != 16) return 8;
  for (const Index radix : {4, 2})
    if (number % radix == 0) return radix;
  for (Index radix = 3; radix * radix <= number; radix += 2)
    if (number % radix == 0) return radix;
  return number;
}

}  // namespace

template <class S> Fourier<S>::Fourier(Index n) : n_(n) {
  const auto add = [](std::vector<S>& to, double numerator, Index denominator, bool sine) {
    const double angle = 2 * std::numbers::pi * numerator / double(denominator);
    to.push_back(S(sine ? std::sin(angle) : std::cos(angle)));
  };
  for (Index length = n, stride = 1; length > 1;) {
    const Index radix = factor<S>(length), rest = length / radix;
    Pass pass{radix, rest, stride, {}, {}};
    for (const bool sine : {false, true}) {
      for (Index j = 1; j < radix; ++j)
        for (Index p = 0; p < rest; ++p) add(pass.turns, -double(p * j), length, sine);
      for (Index k = 0; k < radix; ++k) add(pass.roots, double(k), radix, sine);
    }
    passes_.push_back(std::move(pass));
    length = rest;
    stride *= radix;
  }
}

template <class S> Index Fourier<S>::scratch() const {
  Index largest = 0;
  for (const Pass& pass : passes_) largest = std::max(largest, pass.radix);
  return 4 * (n_ + 16) + 2 * largest * most_lanes;
}

#define STIEFEL_DISPATCH(S)                                                                               \
  HWY_EXPORT(run_##S);                                                                                    \
  template <> void Fourier<S>::transform(const S* re, const S* im, S* out_re, S* out_im, S* work) const { \
    HWY_DYNAMIC_DISPATCH(run_##S)(passes_, re, im, out_re, out_im, work);                                 \
  }
STIEFEL_DISPATCH(float)
STIEFEL_DISPATCH(double)
template class Fourier<float>;
template class Fourier<double>;

}  // namespace stiefel
#endif
