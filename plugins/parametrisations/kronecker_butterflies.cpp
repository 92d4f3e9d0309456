// Kronecker products of 2 × 2 factors per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "parametrisations/kronecker_butterflies.cpp"
// Vectors whose size is unknown to the compiler cannot be array elements; SSSE3 without SSE4 hardly exists.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before this one.
#include <hwy/highway.h>

#include <bit>
#include <utility>

#include "kronecker_butterflies.hpp"
#include "kronecker_field-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {

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

template <class S> void apply_of(const Butterflies<S>& map, CMat<S> X, Mat<S> Y) {
  map.complex ? apply<true>(map, X, Y) : apply<false>(map, X, Y);
}
template <class S>
void pull_back_of(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X, CMat<S> dY, S* memory, S* sums) {
  map.complex ? pull_back<true>(map, adjoint, X, dY, memory, sums)
              : pull_back<false>(map, adjoint, X, dY, memory, sums);
}

#define STIEFEL_FOR(S)                                                                                           \
  void apply_##S(const Butterflies<S>& map, CMat<S> X, Mat<S> Y) { apply_of(map, X, Y); }                        \
  void pull_back_##S(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X, CMat<S> dY, S* memory, \
                     S* sums) {                                                                                  \
    pull_back_of(map, adjoint, X, dY, memory, sums);                                                             \
  }
STIEFEL_FOR(float)
STIEFEL_FOR(double)
#undef STIEFEL_FOR

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

#define STIEFEL_DISPATCH(S)                                                                                   \
  HWY_EXPORT(apply_##S);                                                                                      \
  HWY_EXPORT(pull_back_##S);                                                                                  \
  template <> void apply_butterflies(const Butterflies<S>& map, CMat<S> X, Mat<S> Y) {                        \
    HWY_DYNAMIC_DISPATCH(apply_##S)(map, X, Y);                                                               \
  }                                                                                                           \
  template <> void pull_back_butterflies(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X, \
                                         CMat<S> dY, S* memory, S* sums) {                                    \
    HWY_DYNAMIC_DISPATCH(pull_back_##S)(map, adjoint, X, dY, memory, sums);                                   \
  }
STIEFEL_DISPATCH(float)
STIEFEL_DISPATCH(double)

}  // namespace stiefel
#endif
