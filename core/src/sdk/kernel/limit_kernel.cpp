// Independent chains x ← x/2 + 1: as many as the registers hold, and more than a multiply-add takes cycles times the
// multiply-adds that start in a cycle. Arrays pass in eight vectors at a time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sdk/kernel/limit_kernel.cpp"
#include "sdk/kernel/simd_targets.hpp"
// It chooses the targets, so it stands before the next one.
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before highway.h.
#include <hwy/highway.h>

#include <utility>

#include "sdk/kernel/limit_kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;
constexpr Index lanes = Index(hn::MaxLanes(Tag()));
template <int n> using Up = std::make_integer_sequence<int, n>;
template <int... i> using Range = std::integer_sequence<int, i...>;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSE2
constexpr bool fused = false;
#else
constexpr bool fused = true;
#endif
// As many as fit: some CPUs start four multiply-adds a cycle, which take four cycles each.
constexpr int chains = STIEFEL_VECTOR_REGISTERS * 3 / 4;
constexpr int ahead = 8;

template <int... i> HWY_INLINE float sum_of(const Vec* sum, Range<i...>) {
  Vec all = hn::Zero(Tag());
  ((all = hn::Add(all, sum[i])), ...);
  return hn::GetLane(hn::SumOfLanes(Tag(), all));
}

template <int... i> HWY_INLINE float run_chains(Index repetitions, Range<i...> all) {
  const Tag d;
  const auto tiny = hn::Set(d, 1e-9F);
  Vec sum[] = {hn::Set(d, float(i))...};
  // adds to the register of a factor, since AArch64 has no form that overwrites another one
  for (Index k = 0; k < repetitions; ++k) ((sum[i] = hn::MulAdd(tiny, sum[i], sum[i])), ...);
  return sum_of(sum, all);
}

template <int... i> HWY_INLINE float run_read(const float* a, Index size, Range<i...> all) {
  const Tag d;
  Vec sum[] = {hn::Set(d, float(i))...};
  for (Index k = 0; k < size; k += ahead * lanes) ((sum[i] = hn::Add(sum[i], hn::LoadU(d, a + k + i * lanes))), ...);
  return sum_of(sum, all);
}

template <int... i> HWY_INLINE void run_triad(const float* a, const float* b, float* c, Index size, Range<i...>) {
  const Tag d;
  const auto half = hn::Set(d, 0.5F);
  for (Index k = 0; k < size; k += ahead * lanes)
    (hn::StoreU(hn::MulAdd(hn::LoadU(d, b + k + i * lanes), half, hn::LoadU(d, a + k + i * lanes)), d,
                c + k + i * lanes),
     ...);
}

float in_registers(Index repetitions) { return run_chains(repetitions, Up<chains>()); }
float read(const float* a, Index size) { return run_read(a, size, Up<ahead>()); }
void triad(const float* a, const float* b, float* c, Index size) { run_triad(a, b, c, size, Up<ahead>()); }

const LimitKernel& kernel() {
  static constexpr LimitKernel table{fused, chains * lanes, &in_registers, &read, &triad};
  return table;
}

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

HWY_EXPORT(kernel);

const LimitKernel& limit_kernel() { return HWY_DYNAMIC_DISPATCH(kernel)(); }

}  // namespace stiefel
#endif
