// Register tiles of Y = W·X: V vectors of rows × C columns of X are accumulated over the whole depth, then stored.
//
// Rules that keep GCC 12 from spilling accumulators to memory in the inner loop: every index into them is a template
// argument, every helper is inlined, and nothing but loads, multiplications and additions happens between the first and
// the last column of W.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sdk/kernel/product_kernel.cpp"
#include "sdk/kernel/simd_targets.hpp"
// It chooses the targets, so it stands before the next one.
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before highway.h.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <stiefel/product.hpp>

#include "sdk/kernel/product_kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class S> using Tag = hn::ScalableTag<S>;
template <class S> using Vec = hn::Vec<Tag<S>>;
template <class S> constexpr Index lanes = Index(hn::MaxLanes(Tag<S>()));
template <int n> using Up = std::make_integer_sequence<int, n>;
template <int... i> using Range = std::integer_sequence<int, i...>;

constexpr int registers = STIEFEL_VECTOR_REGISTERS;
constexpr int most_vectors = 8;
constexpr int most_columns = registers == 32 ? 12 : 6;

/// Tile height: V·C accumulators, V vectors of W and one of X fit into the registers, at least eight accumulators hide
/// the latency of a multiply-add, and a tile as wide as high needs the fewest loads.
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

/// w[0 … count) and zeros behind.
template <class S> HWY_INLINE Vec<S> load_part(const S* w, Index count) {
  const Tag<S> d;
#if HWY_MEM_OPS_MIGHT_FAULT
  if (count == lanes<S>) return hn::LoadU(d, w);
  HWY_ALIGN S rows[lanes<S>] = {};
  std::copy_n(w, count, rows);
  return hn::Load(d, rows);
#else
  return hn::MaskedLoad(hn::FirstN(d, std::size_t(count)), d, w);
#endif
}

template <class S> HWY_INLINE void store_full(Vec<S> sum, S* y, bool accumulate, Vec<S> sign) {
  const Tag<S> d;
  if (accumulate) sum = hn::MulAdd(sum, sign, hn::LoadU(d, y));
  hn::StoreU(sum, d, y);
}

template <class S, int... v>
HWY_INLINE void store_column(const Vec<S>* sum, S* y, Index last, bool accumulate, Vec<S> sign, Range<v...>) {
  constexpr int end = int(sizeof...(v)) - 1;
  ((v < end ? store_full<S>(sum[v], y + v * lanes<S>, accumulate, sign) : void()), ...);
  if (last == lanes<S>)
    store_full<S>(sum[end], y + end * lanes<S>, accumulate, sign);
  else
    store_part<S>(sum[end], y + end * lanes<S>, last, accumulate, sign);
}

/// y += sum, rows `distance` apart.
template <class S, int... v>
HWY_INLINE void add_spread(const Vec<S>* sum, S* y, Index distance, Index last, Range<v...>) {
  constexpr Index V = sizeof...(v);
  HWY_ALIGN S rows[V * lanes<S>];
  (hn::Store(sum[v], Tag<S>(), rows + v * lanes<S>), ...);
  for (Index i = 0; i < (V - 1) * lanes<S> + last; ++i) y[i * distance] += rows[i];
}

template <class S, int... v> HWY_INLINE void update_column(const Vec<S>* w, const S* x, Vec<S>* sum, Range<v...>) {
  const auto factor = hn::Set(Tag<S>(), *x);
  ((sum[v] = hn::MulAdd(w[v], factor, sum[v])), ...);
}

template <class S, int... i> HWY_INLINE void clear(Vec<S>* sum, Range<i...>) { ((sum[i] = hn::Zero(Tag<S>())), ...); }

/// Distance of a panel's columns; only the last panel of an odd number of vectors has half the height.
template <class S, int V> constexpr Index step(int v) { return v == V - 1 && v % 2 == 0 ? lanes<S> : 2 * lanes<S>; }

/// A packed W, and X by columns.
template <class S> struct Packed {
  static constexpr bool any_row_distance = false;
  const S *w, *x;
  Index panel, x_stride;

  Packed(const ProductCall<S>& call, const S* w, const S* x, Index)
      : w(w), x(x), panel(2 * lanes<S> * call.depth), x_stride(call.x_stride) {}
  template <int V> HWY_INLINE Vec<S> row(int v, Index k) const {
    return hn::Load(Tag<S>(), w + (v / 2) * panel + (v % 2) * lanes<S> + k * step<S, V>(v));
  }
  HWY_INLINE const S* factor(int c, Index k) const { return x + c * x_stride + k; }
  static Index first_row(const ProductCall<S>& call, Index row) { return row * call.depth; }
  static Index first_column(const ProductCall<S>& call, Index column) { return column * call.x_stride; }
};

/// A plain W, and the columns of X as rows of B = Xᵀ.
template <class S> struct Plain {
  static constexpr bool any_row_distance = true;
  const S *w, *x;
  Index w_stride, x_stride, last;

  Plain(const ProductCall<S>& call, const S* w, const S* x, Index last)
      : w(w), x(x), w_stride(call.w_stride), x_stride(call.x_stride), last(last) {}
  template <int V> HWY_INLINE Vec<S> row(int v, Index k) const {
    const S* from = w + v * lanes<S> + k * w_stride;
    return v == V - 1 ? load_part<S>(from, last) : hn::LoadU(Tag<S>(), from);
  }
  HWY_INLINE const S* factor(int c, Index k) const { return x + c + k * x_stride; }
  static Index first_row(const ProductCall<S>&, Index row) { return row; }
  static Index first_column(const ProductCall<S>&, Index column) { return column; }
};

/// One tile: `w` is its first panel, `last` the rows of its last vector.
template <class S, class Source, int... v, int... c> HWY_INLINE void run_tile(const ProductCall<S>& call, const S* w,
                                                                              const S* x, S* y, Index last,
                                                                              Range<v...> rows, Range<c...>) {
  constexpr int V = sizeof...(v), C = sizeof...(c);
  const Index depth = call.depth;
  const Source source(call, w, x, last);
  Vec<S> sum[C * V];
  clear<S>(sum, Up<C * V>());
  for (Index k = 0; k < depth; ++k) {
    const Vec<S> column[V] = {source.template row<V>(v, k)...};
    (update_column<S>(column, source.factor(c, k), sum + c * V, rows), ...);
  }
  if constexpr (Source::any_row_distance)
    if (call.y_row != 1) return (add_spread<S>(sum + c * V, y + c * call.y_stride, call.y_row, last, rows), ...);
  const auto sign = hn::Set(Tag<S>(), call.sign);
  (store_column<S>(sum + c * V, y + c * call.y_stride, last, call.accumulate, sign, rows), ...);
}

template <class S, class Source, int V, int C>
HWY_NOINLINE void tile(const ProductCall<S>& call, const S* w, const S* x, S* y, Index last) {
  run_tile<S, Source>(call, w, x, y, last, Up<V>(), Up<C>());
}

template <class S> using TileFunction = void (*)(const ProductCall<S>&, const S* w, const S* x, S* y, Index last);

template <class S, class Source, int C, int V> constexpr TileFunction<S> tile_or_none() {
  if constexpr (V <= tile_vectors(C))
    return &tile<S, Source, V, C>;
  else
    return nullptr;
}

/// tiles<S, Source>[(C − 1)·most_vectors + V − 1]
template <class S, class Source> constexpr auto tiles = []<int... i>(Range<i...>) {
  return std::array<TileFunction<S>, sizeof...(i)>{
      tile_or_none<S, Source, i / most_vectors + 1, i % most_vectors + 1>()...};
}
(Up<most_columns * most_vectors>());

/// Vectors of W that all columns pass before the next ones: even, and for one column balanced, since there a low tile
/// takes as long as a high one.
inline Index band_vectors(Index vectors, Index columns) {
  const Index most = tile_vectors(int(columns));
  const Index bands = (vectors + most - 1) / most;
  return columns > 1 ? most : ((vectors + bands - 1) / bands + 1) / 2 * 2;
}

/// A W of this many bytes stays in the nearest cache while all columns pass, so that Y is written column after column.
constexpr Index near = 16 * 1024;

template <class S, class Source> void multiply(const ProductCall<S>& call) {
  constexpr Index N = lanes<S>;
  const Index vectors = (call.rows + N - 1) / N;
  const Index blocks = (call.columns + most_columns - 1) / most_columns;
  const Index narrow = call.columns / blocks, wide_blocks = call.columns % blocks;
  const Index band = vectors * N * call.depth * Index(sizeof(S)) <= near ? vectors : band_vectors(vectors, narrow);
  for (Index first = 0; first < vectors; first += band) {
    const Index end = std::min(first + band, vectors);
    for (Index block = 0, column = 0; block < blocks; ++block) {
      const Index columns = narrow + (block < wide_blocks);
      const Index most = std::min(band_vectors(end - first, columns), Index(tile_vectors(int(columns))));
      for (Index vector = first; vector < end; vector += most) {
        const Index high = std::min(most, end - vector), row = vector * N;
        const Index last = std::min(N, call.rows - row - (high - 1) * N);
        tiles<S, Source>[std::size_t((columns - 1) * most_vectors + high - 1)](
            call, call.w + Source::first_row(call, row), call.x + Source::first_column(call, column),
            call.y + column * call.y_stride + row * call.y_row, last);
      }
      column += columns;
    }
  }
}

template <class S> const ProductKernel<S>& kernel() {
  static constexpr ProductKernel<S> table{lanes<S>, &multiply<S, Packed<S>>, &multiply<S, Plain<S>>};
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
  // AArch64 without AES: Highway then calls the functions that it compiled for every CPU
  if (names.empty()) names.push_back(hwy::TargetName(HWY_STATIC_TARGET));
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
