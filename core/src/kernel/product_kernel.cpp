// Register tiles of Y = W·X: V vectors of rows × C columns of X are accumulated over the whole depth, then stored.
//
// Rules that keep GCC 12 from spilling accumulators to memory in the inner loop: every index into them is a template argument, every
// helper is inlined, and nothing but loads, multiplications and additions happens between the first and the last column of W.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/product_kernel.cpp"
#include "simd_targets.hpp"
// It chooses the targets, so it stands before the next one.
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before highway.h.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <stiefel/product.hpp>

#include "product_kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class S> using Tag = hn::ScalableTag<S>;
template <class S> using Vec = hn::Vec<Tag<S>>;
template <class S> constexpr Index lanes = Index(hn::MaxLanes(Tag<S>()));
template <int n> using Up = std::make_integer_sequence<int, n>;
template <int... i> using Range = std::integer_sequence<int, i...>;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
constexpr int registers = 32;
#else
constexpr int registers = 16;
#endif
constexpr int most_vectors = 8;
constexpr int most_columns = registers == 32 ? 12 : 6;

/// Tile height: V·C accumulators, V vectors of W and one of X fit into the registers, at least eight accumulators hide the latency of
/// a multiply-add, and a tile as wide as high needs the fewest loads.
constexpr int tile_vectors(int columns) {
  if (columns == 1) return most_vectors;
  if (columns <= 3) return 4;
  return columns * 4 + 5 <= registers ? 4 : 2;
}

/// y[0 … count) of the last, incomplete vector.
template <class S> HWY_INLINE void store_part(Vec<S> sum, S* y, Index count, bool accumulate, Vec<S> sign) {
  const Tag<S> d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN S rows[lanes<S>] = {};
  if (accumulate) {
    std::copy_n(y, count, rows);
    sum = hn::MulAdd(sum, sign, hn::Load(d, rows));
  }
  hn::Store(sum, d, rows);
  std::copy_n(rows, count, y);
#else
  const auto mask = hn::FirstN(d, std::size_t(count));
  if (accumulate) sum = hn::MulAdd(sum, sign, hn::MaskedLoad(mask, d, y));
  hn::BlendedStore(sum, mask, d, y);
#endif
}

template <class S> HWY_INLINE void store_full(Vec<S> sum, S* y, bool accumulate, Vec<S> sign) {
  const Tag<S> d;
  if (accumulate) sum = hn::MulAdd(sum, sign, hn::LoadU(d, y));
  hn::StoreU(sum, d, y);
}

template <class S, int... v> HWY_INLINE void store_column(const Vec<S>* sum, S* y, Index last, bool accumulate, Vec<S> sign, Range<v...>) {
  constexpr int end = int(sizeof...(v)) - 1;
  ((v < end ? store_full<S>(sum[v], y + v * lanes<S>, accumulate, sign) : void()), ...);
  if (last == lanes<S>)
    store_full<S>(sum[end], y + end * lanes<S>, accumulate, sign);
  else
    store_part<S>(sum[end], y + end * lanes<S>, last, accumulate, sign);
}

template <class S, int... v> HWY_INLINE void update_column(const Vec<S>* w, const S* x, Vec<S>* sum, Range<v...>) {
  const auto factor = hn::Set(Tag<S>(), *x);
  ((sum[v] = hn::MulAdd(w[v], factor, sum[v])), ...);
}

template <class S, int... i> HWY_INLINE void clear(Vec<S>* sum, Range<i...>) { ((sum[i] = hn::Zero(Tag<S>())), ...); }

/// Distance of a panel's columns; only the last panel of an odd number of vectors has half the height.
template <class S, int V> constexpr Index step(int v) { return v == V - 1 && v % 2 == 0 ? lanes<S> : 2 * lanes<S>; }

/// One tile: `w` is its first panel, `last` the rows of its last vector.
template <class S, int... v, int... c>
HWY_INLINE void run_tile(const ProductCall<S>& call, const S* w, const S* x, S* y, Index last, Range<v...> rows, Range<c...>) {
  constexpr Index N = lanes<S>;
  constexpr int V = sizeof...(v), C = sizeof...(c);
  const Tag<S> d;
  const Index depth = call.depth, panel = 2 * N * depth, stride = call.x_stride;
  Vec<S> sum[C * V];
  clear<S>(sum, Up<C * V>());
  for (Index k = 0; k < depth; ++k) {
    const Vec<S> column[V] = {hn::Load(d, w + (v / 2) * panel + (v % 2) * N + k * step<S, V>(v))...};
    (update_column<S>(column, x + c * stride + k, sum + c * V, rows), ...);
  }
  const auto sign = hn::Set(d, call.sign);
  (store_column<S>(sum + c * V, y + c * call.y_stride, last, call.accumulate, sign, rows), ...);
}

template <class S, int V, int C> HWY_NOINLINE void tile(const ProductCall<S>& call, const S* w, const S* x, S* y, Index last) {
  run_tile<S>(call, w, x, y, last, Up<V>(), Up<C>());
}

template <class S> using TileFunction = void (*)(const ProductCall<S>&, const S* w, const S* x, S* y, Index last);

template <class S, int C, int V> constexpr TileFunction<S> tile_or_none() {
  if constexpr (V <= tile_vectors(C))
    return &tile<S, V, C>;
  else
    return nullptr;
}

/// tiles<S>[(C − 1)·most_vectors + V − 1]
template <class S> constexpr auto tiles = []<int... i>(Range<i...>) {
  return std::array<TileFunction<S>, sizeof...(i)>{tile_or_none<S, i / most_vectors + 1, i % most_vectors + 1>()...};
}
(Up<most_columns * most_vectors>());

/// Vectors of W that all columns pass before the next ones: even, and for one column balanced, since there a low tile takes as long
/// as a high one.
inline Index band_vectors(Index vectors, Index columns) {
  const Index most = tile_vectors(int(columns));
  const Index bands = (vectors + most - 1) / most;
  return columns > 1 ? most : ((vectors + bands - 1) / bands + 1) / 2 * 2;
}

/// Y's vectors [first, end) for `columns` columns.
template <class S>
HWY_INLINE void run_band(const ProductCall<S>& call, Index first, Index end, Index most, const S* x, S* y, Index columns) {
  constexpr Index N = lanes<S>;
  for (; first < end; first += most) {
    const Index high = std::min(most, end - first);
    const Index last = std::min(N, call.rows - (first + high - 1) * N);
    tiles<S>[std::size_t((columns - 1) * most_vectors + high - 1)](call, call.packed + first * N * call.depth, x, y + first * N, last);
  }
}

template <class S> void multiply(const ProductCall<S>& call) {
  constexpr Index N = lanes<S>;
  const Index vectors = (call.rows + N - 1) / N;
  const Index blocks = (call.columns + most_columns - 1) / most_columns;
  const Index narrow = call.columns / blocks, wide_blocks = call.columns % blocks;
  const Index band = band_vectors(vectors, narrow);
  for (Index first = 0; first < vectors; first += band) {
    const Index end = std::min(first + band, vectors);
    for (Index block = 0, column = 0; block < blocks; ++block) {
      const Index columns = narrow + (block < wide_blocks);
      const Index most = std::min(band, Index(tile_vectors(int(columns))));
      run_band(call, first, end, most, call.x + column * call.x_stride, call.y + column * call.y_stride, columns);
      column += columns;
    }
  }
}

template <class S> const ProductKernel<S>& kernel() {
  static constexpr ProductKernel<S> table{lanes<S>, &multiply<S>};
  return table;
}

const ProductKernel<float>& kernel_float() { return kernel<float>(); }
const ProductKernel<double>& kernel_double() { return kernel<double>(); }
const char* target() { return hwy::TargetName(HWY_TARGET); }

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

HWY_EXPORT(kernel_float);
HWY_EXPORT(kernel_double);
HWY_EXPORT(target);

template <> const ProductKernel<float>& product_kernel() { return HWY_DYNAMIC_DISPATCH(kernel_float)(); }
template <> const ProductKernel<double>& product_kernel() { return HWY_DYNAMIC_DISPATCH(kernel_double)(); }

const char* product_target() { return HWY_DYNAMIC_DISPATCH(target)(); }

std::vector<const char*> product_targets() {
  const std::int64_t selected = hwy::SupportedTargets();
  hwy::SetSupportedTargetsForTest(0);
  std::vector<const char*> names;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) names.push_back(hwy::TargetName(target));
  hwy::SetSupportedTargetsForTest(selected);
  return names;
}

bool select_product_target(std::string_view name) {
  hwy::SetSupportedTargetsForTest(0);
  if (name.empty()) return true;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (name != hwy::TargetName(target)) continue;
    hwy::SetSupportedTargetsForTest(target);
    return true;
  }
  return false;
}

}  // namespace stiefel
#endif
