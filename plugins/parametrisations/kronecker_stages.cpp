// Kronecker products per SIMD target: maps of 2 × 2 factors alone in place, others entry by entry.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "parametrisations/kronecker_stages.cpp"
// Vectors whose size is unknown to the compiler cannot be array elements; SSSE3 without SSE4 hardly exists.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before this one.
#include <hwy/highway.h>

#include <bit>
#include <utility>

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

/// The factors of a map of 2 × 2 factors. The pairs of the last ones lie less than a vector apart: each lane then finds
/// both operands in its own vector.
template <bool complex, class S> class Plan {
  using D = hn::ScalableTag<S>;
  using F = Field<D, complex>;
  using N = typename F::N;
  using Lane = hwy::MakeSigned<S>;
  using Table = decltype(hn::SetTableIndices(D(), static_cast<const Lane*>(nullptr)));
  static constexpr Index L = kronecker_lanes<S>, lanes = Index(hn::MaxLanes(D())),
                         within = Index(std::bit_width(std::size_t(lanes))) - 1;
  struct Within {
    N w0, w1;  // what each lane multiplies x_0 and x_1 by
    Table first, second;
  };

 public:
  explicit Plan(const Butterflies<S>& map) : map_(map), across_(map.count - within) {
    for (Index i = 0; i < within; ++i) {
      const Index bit = apart(across_ + i);
      const S* by_lane = map.factor(across_ + i) + 8;
      const auto numbers = [&](Index part) HWY_ATTR {
        return N{hn::LoadU(d_, by_lane + part * L), hn::LoadU(d_, by_lane + (part + 1) * L)};
      };
      Lane first[lanes], second[lanes];
      for (Index k = 0; k < lanes; ++k) first[k] = Lane(k & ~bit), second[k] = Lane(k | bit);
      within_[i] = {numbers(0), numbers(2), hn::SetTableIndices(d_, first), hn::SetTableIndices(d_, second)};
    }
  }

  void apply(const S* in, S* out) const {
    const Parts<S> y = column(out);
    Parts<const S> x = column(in);
    if (!map_.from_last)
      for (Index k = 0; k < across_; ++k, x = y) apply_across(k, x, y);
    for (Index j = 0; j < map_.size; j += lanes) {
      N v = f_.load(x, j);
      for (Index i = 0; i < within; ++i) v = apply_within(within_[map_.from_last ? within - 1 - i : i], v);
      f_.store(v, y, j);
    }
    if (map_.from_last)
      for (Index k = across_; k-- > 0;) apply_across(k, y, y);
  }

  /// out = the product with factor k alone.
  void apply_one(Index k, const S* in, S* out) const {
    if (k < across_) return apply_across(k, column(in), column(out));
    for (Index j = 0; j < map_.size; j += lanes)
      f_.store(apply_within(within_[k - across_], f_.load(column(in), j)), column(out), j);
  }

  /// sums(p, q) += g_p·conj(x_q) by lane. Within a vector p is the lane's place, and sums(0, q) is used for both.
  void gradient(Index k, const S* in, const S* dout, S* sums) const {
    const Parts<const S> x = column(in), g = column(dout);
    const Parts<S> s{sums, sums + 4 * L};
    const Index step = apart(k);
    N s00 = f_.load(s, 0), s01 = f_.load(s, L);
    if (k >= across_) {
      for (Index j = 0; j < map_.size; j += lanes) {
        const N v = f_.load(x, j), dv = f_.load(g, j);
        s00 = f_.add_conjugate(s00, look_up(v, within_[k - across_].first), dv);
        s01 = f_.add_conjugate(s01, look_up(v, within_[k - across_].second), dv);
      }
    } else {
      N s10 = f_.load(s, 2 * L), s11 = f_.load(s, 3 * L);
      for (Index block = 0; block < map_.size; block += 2 * step)
        for (Index j = block; j < block + step; j += lanes) {
          const N x0 = f_.load(x, j), x1 = f_.load(x, j + step), g0 = f_.load(g, j), g1 = f_.load(g, j + step);
          s00 = f_.add_conjugate(s00, x0, g0);
          s01 = f_.add_conjugate(s01, x1, g0);
          s10 = f_.add_conjugate(s10, x0, g1);
          s11 = f_.add_conjugate(s11, x1, g1);
        }
      f_.store(s10, s, 2 * L);
      f_.store(s11, s, 3 * L);
    }
    f_.store(s00, s, 0);
    f_.store(s01, s, L);
  }

  /// Lanes whose place is p = 1 move from sums(0, q) to sums(1, q).
  void sort(S* sums) const {
    for (Index k = across_; k < map_.count; ++k)
      for (Index part = 0; part < (complex ? 2 : 1); ++part)
        for (Index q = 0; q < 2; ++q)
          for (Index lane = 0; lane < lanes; ++lane)
            if (lane & apart(k)) {
              S* entry = sums + k * (complex ? 8 : 4) * L + part * 4 * L + q * L + lane;
              entry[2 * L] = std::exchange(*entry, S(0));
            }
  }

 private:
  Index apart(Index k) const { return map_.size >> (k + 1); }
  template <class T> Parts<T> column(T* numbers) const { return {numbers, numbers + map_.size}; }
  HWY_INLINE N look_up(const N& x, const Table& table) const {
    return {hn::TableLookupLanes(x.re, table), complex ? hn::TableLookupLanes(x.im, table) : x.im};
  }
  HWY_INLINE N apply_within(const Within& w, const N& x) const {
    return f_.add(f_.add(f_.zero(), w.w0, look_up(x, w.first)), w.w1, look_up(x, w.second));
  }
  HWY_INLINE void apply_across(Index k, const Parts<const S>& in, const Parts<S>& out) const {
    const Parts<const S> W{map_.factor(k), map_.factor(k) + 4};
    const N w00 = f_.constant(W, 0), w01 = f_.constant(W, 1), w10 = f_.constant(W, 2), w11 = f_.constant(W, 3);
    const Index step = apart(k);
    for (Index block = 0; block < map_.size; block += 2 * step)
      for (Index j = block; j < block + step; j += lanes) {
        const N x0 = f_.load(in, j), x1 = f_.load(in, j + step);
        f_.store(f_.add(f_.add(f_.zero(), w00, x0), w01, x1), out, j);
        f_.store(f_.add(f_.add(f_.zero(), w10, x0), w11, x1), out, j + step);
      }
  }

  D d_;
  F f_{d_};
  const Butterflies<S>& map_;
  Index across_;  // number of factors whose pairs are in two vectors
  Within within_[std::max<Index>(within, 1)];
};

template <bool complex, class S> void apply(const Butterflies<S>& map, CMat<S> X, Mat<S> Y) {
  const Plan<complex, S> plan(map);
  for (Index c = 0; c < X.cols(); ++c) plan.apply(X.col(c).data(), Y.col(c).data());
}
template <bool complex, class S>
void pull_back(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X, CMat<S> dY, S* memory, S* sums) {
  const Plan<complex, S> forward(map), backward(adjoint);
  const Index length = (complex ? 2 : 1) * map.size, entries = (complex ? 8 : 4) * kronecker_lanes<S>;
  for (Index c = 0; c < X.cols(); ++c) {
    const auto operand = [&](Index k) { return k == 0 ? X.col(c).data() : memory + k * length; };
    for (Index k = 0; k + 1 < map.count; ++k) forward.apply_one(k, operand(k), memory + (k + 1) * length);
    const S* g = dY.col(c).data();
    for (Index k = map.count; k-- > 0;) {
      forward.gradient(k, operand(k), g, sums + k * entries);
      if (k > 0) backward.apply_one(k, g, memory);
      g = memory;
    }
  }
  forward.sort(sums);
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

template <class S> void apply_of(const Butterflies<S>& map, CMat<S> X, Mat<S> Y) {
  map.complex ? apply<true>(map, X, Y) : apply<false>(map, X, Y);
}
template <class S>
void pull_back_of(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X, CMat<S> dY, S* memory, S* sums) {
  map.complex ? pull_back<true>(map, adjoint, X, dY, memory, sums)
              : pull_back<false>(map, adjoint, X, dY, memory, sums);
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
  }                                                                                                                  \
  void apply_##S(const Butterflies<S>& map, CMat<S> X, Mat<S> Y) { apply_of(map, X, Y); }                            \
  void pull_back_##S(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X, CMat<S> dY, S* memory,     \
                     S* sums) {                                                                                      \
    pull_back_of(map, adjoint, X, dY, memory, sums);                                                                 \
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
  }                                                                                                                  \
  HWY_EXPORT(apply_##S);                                                                                             \
  HWY_EXPORT(pull_back_##S);                                                                                         \
  template <> void apply_butterflies(const Butterflies<S>& map, CMat<S> X, Mat<S> Y) {                               \
    HWY_DYNAMIC_DISPATCH(apply_##S)(map, X, Y);                                                                      \
  }                                                                                                                  \
  template <> void pull_back_butterflies(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X,        \
                                         CMat<S> dY, S* memory, S* sums) {                                           \
    HWY_DYNAMIC_DISPATCH(pull_back_##S)(map, adjoint, X, dY, memory, sums);                                          \
  }
STIEFEL_DISPATCH(float)
STIEFEL_DISPATCH(double)

}  // namespace stiefel
#endif
