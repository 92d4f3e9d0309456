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
      const hn::RebindToSigned<D> places;
      const auto place = hn::Iota(places, 0), one = hn::Set(places, Lane(bit));
      within_[i] = {numbers(0), numbers(2), hn::IndicesFromVec(d_, hn::AndNot(one, place)),
                    hn::IndicesFromVec(d_, hn::Or(place, one))};
    }
  }

  /// out = W in, formed in place, or out += W in, formed in `memory`.
  template <bool add> void apply(const S* in, S* out, S* memory) const {
    const Parts<S> y = column(out), formed = add ? column(memory) : y;
    Parts<const S> x = column(in);
    if (!map_.from_last)
      for (Index k = 0; k < across_; ++k, x = formed) apply_across<false>(k, x, formed);
    const auto apply_last = [&]<bool add_here>(const Parts<S>& to) HWY_ATTR {
      for (Index j = 0; j < map_.size; j += lanes) {
        N v = f_.load(x, j);
        for (Index i = 0; i < within; ++i) v = apply_within(within_[map_.from_last ? within - 1 - i : i], v);
        store<add_here>(v, to, j);
      }
    };
    if (!map_.from_last || across_ == 0) return apply_last.template operator()<add>(y);
    apply_last.template operator()<false>(formed);
    for (Index k = across_; k-- > 1;) apply_across<false>(k, formed, formed);
    apply_across<add>(0, formed, y);
  }

  /// Adds each factor's gradient to `sums`, from x and the gradient dout of W x. Within a vector p is the lane's place,
  /// and sums(0, q) is used for both. `memory` has room for `count` columns: the first has the gradient of what factor
  /// k maps, column k that itself.
  void pull_back(const Plan& adjoint, const S* x, const S* dout, S* memory, S* sums) const {
    const Index length = (complex ? 2 : 1) * map_.size, entries = (complex ? 8 : 4) * L;
    const auto operand = [&](Index k) { return k == 0 ? x : memory + k * length; };
    for (Index k = 0; k < std::min(across_, map_.count - 1); ++k)
      apply_across<false>(k, column(operand(k)), column(memory + (k + 1) * length));
    S* within_sums = sums + across_ * entries;
    if (map_.size % (4 * lanes) == 0)
      pull_back_within<4>(adjoint, operand(across_), dout, memory, within_sums);
    else
      pull_back_within<1>(adjoint, operand(across_), dout, memory, within_sums);
    for (Index k = across_; k-- > 0;) pull_back_across(k, adjoint, operand(k), memory, sums + k * entries);
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
  /// `block` vectors at a time: their chains of products are independent.
  template <Index block> void pull_back_within(const Plan& adjoint, const S* in, const S* dout, S* din, S* sums) const {
    constexpr Index entries = (complex ? 8 : 4) * L;
    N v[within + 1][block], g[block];
    for (Index j = 0; j < map_.size; j += block * lanes) {
      for (Index b = 0; b < block; ++b) {
        if constexpr (within > 0) v[0][b] = f_.load(column(in), j + b * lanes);
        g[b] = f_.load(column(dout), j + b * lanes);
      }
      for (Index i = 0; i + 1 < within; ++i)
        for (Index b = 0; b < block; ++b) v[i + 1][b] = apply_within(within_[i], v[i][b]);
      for (Index i = within; i-- > 0;) {
        const Parts<S> sum{sums + i * entries, sums + i * entries + 4 * L};
        N s0 = f_.load(sum, 0), s1 = f_.load(sum, L);
        for (Index b = 0; b < block; ++b) {
          s0 = f_.add_conjugate(s0, look_up(v[i][b], within_[i].first), g[b]);
          s1 = f_.add_conjugate(s1, look_up(v[i][b], within_[i].second), g[b]);
          g[b] = apply_within(adjoint.within_[i], g[b]);
        }
        f_.store(s0, sum, 0);
        f_.store(s1, sum, L);
      }
      for (Index b = 0; b < block; ++b) f_.store(g[b], column(din), j + b * lanes);
    }
  }
  /// sums(p, q) += g_p·conj(x_q) by lane, and g becomes the gradient of x, unless k = 0.
  void pull_back_across(Index k, const Plan& adjoint, const S* in, S* gradient, S* sums) const {
    const Parts<const S> x = column(in), W{adjoint.map_.factor(k), adjoint.map_.factor(k) + 4};
    const Parts<S> g = column(gradient), s{sums, sums + 4 * L};
    const N w00 = f_.constant(W, 0), w01 = f_.constant(W, 1), w10 = f_.constant(W, 2), w11 = f_.constant(W, 3);
    N s00 = f_.load(s, 0), s01 = f_.load(s, L), s10 = f_.load(s, 2 * L), s11 = f_.load(s, 3 * L);
    const Index step = apart(k);
    for (Index block = 0; block < map_.size; block += 2 * step)
      for (Index j = block; j < block + step; j += lanes) {
        const N x0 = f_.load(x, j), x1 = f_.load(x, j + step), g0 = f_.load(g, j), g1 = f_.load(g, j + step);
        s00 = f_.add_conjugate(s00, x0, g0);
        s01 = f_.add_conjugate(s01, x1, g0);
        s10 = f_.add_conjugate(s10, x0, g1);
        s11 = f_.add_conjugate(s11, x1, g1);
        if (k == 0) continue;
        f_.store(f_.add(f_.add(f_.zero(), w00, g0), w01, g1), g, j);
        f_.store(f_.add(f_.add(f_.zero(), w10, g0), w11, g1), g, j + step);
      }
    f_.store(s00, s, 0);
    f_.store(s01, s, L);
    f_.store(s10, s, 2 * L);
    f_.store(s11, s, 3 * L);
  }
  template <bool add> HWY_INLINE void store(const N& x, const Parts<S>& out, Index j) const {
    f_.store(add ? f_.sum(f_.load(out, j), x) : x, out, j);
  }
  template <bool add> HWY_INLINE void apply_across(Index k, const Parts<const S>& in, const Parts<S>& out) const {
    const Parts<const S> W{map_.factor(k), map_.factor(k) + 4};
    const N w00 = f_.constant(W, 0), w01 = f_.constant(W, 1), w10 = f_.constant(W, 2), w11 = f_.constant(W, 3);
    const Index step = apart(k);
    for (Index block = 0; block < map_.size; block += 2 * step)
      for (Index j = block; j < block + step; j += lanes) {
        const N x0 = f_.load(in, j), x1 = f_.load(in, j + step);
        store<add>(f_.add(f_.add(f_.zero(), w00, x0), w01, x1), out, j);
        store<add>(f_.add(f_.add(f_.zero(), w10, x0), w11, x1), out, j + step);
      }
  }

  D d_;
  F f_{d_};
  const Butterflies<S>& map_;
  Index across_;  // number of factors whose pairs are in two vectors
  Within within_[std::max<Index>(within, 1)];
};

template <bool complex, class S> void apply(const Butterflies<S>& map, CMat<S> X, Mat<S> Y, S* memory) {
  const Plan<complex, S> plan(map);
  for (Index c = 0; c < X.cols(); ++c)
    memory ? plan.template apply<true>(X.col(c).data(), Y.col(c).data(), memory)
           : plan.template apply<false>(X.col(c).data(), Y.col(c).data(), memory);
}
template <bool complex, class S>
void pull_back(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X, CMat<S> dY, S* memory, S* sums) {
  const Plan<complex, S> forward(map), backward(adjoint);
  for (Index c = 0; c < X.cols(); ++c) forward.pull_back(backward, X.col(c).data(), dY.col(c).data(), memory, sums);
  forward.sort(sums);
}

template <class S> void apply_of(const Butterflies<S>& map, CMat<S> X, Mat<S> Y, S* memory) {
  map.complex ? apply<true>(map, X, Y, memory) : apply<false>(map, X, Y, memory);
}
template <class S>
void pull_back_of(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X, CMat<S> dY, S* memory, S* sums) {
  map.complex ? pull_back<true>(map, adjoint, X, dY, memory, sums)
              : pull_back<false>(map, adjoint, X, dY, memory, sums);
}

#define STIEFEL_FOR(S)                                                                                           \
  void apply_##S(const Butterflies<S>& map, CMat<S> X, Mat<S> Y, S* memory) { apply_of(map, X, Y, memory); }     \
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
  template <> void apply_butterflies(const Butterflies<S>& map, CMat<S> X, Mat<S> Y, S* memory) {             \
    HWY_DYNAMIC_DISPATCH(apply_##S)(map, X, Y, memory);                                                       \
  }                                                                                                           \
  template <> void pull_back_butterflies(const Butterflies<S>& map, const Butterflies<S>& adjoint, CMat<S> X, \
                                         CMat<S> dY, S* memory, S* sums) {                                    \
    HWY_DYNAMIC_DISPATCH(pull_back_##S)(map, adjoint, X, dY, memory, sums);                                   \
  }
STIEFEL_DISPATCH(float)
STIEFEL_DISPATCH(double)

}  // namespace stiefel
#endif
