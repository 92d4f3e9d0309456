// Layers of plane rotations per SIMD target. The loops are plain: the pairs of a run are disjoint, as the compiler is
// informed, and all numbers of a pair are read before one is written.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "parametrisations/givens_layers.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before this one.
#include <hwy/highway.h>

#include "givens_layers.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {

template <bool Pairs, Index Stride, class S>
HWY_INLINE void rotate(const GivensLayers<S>& layers, const GivensRun& run, S* x) {
  const Index n = layers.n;
  const S *c = layers.c.data() + run.first, *s = layers.s.data() + run.first;
  [[maybe_unused]] const S* er = Pairs ? layers.e_re.data() + run.first : nullptr;
  [[maybe_unused]] const S* ei = Pairs ? layers.e_im.data() + run.first : nullptr;
  S *xi = x + run.i, *xj = xi + (Stride == 2 ? 1 : run.j - run.i);
#pragma GCC ivdep
  for (Index k = 0; k < run.count; ++k) {
    const Index at = k * Stride;
    const S i_re = xi[at], j_re = xj[at];
    if constexpr (Pairs) {
      const S i_im = xi[n + at], j_im = xj[n + at];
      const S u_re = er[k] * j_re - ei[k] * j_im, u_im = er[k] * j_im + ei[k] * j_re;
      xi[at] = c[k] * i_re - s[k] * u_re;
      xi[n + at] = c[k] * i_im - s[k] * u_im;
      xj[at] = s[k] * i_re + c[k] * u_re;
      xj[n + at] = s[k] * i_im + c[k] * u_im;
    } else {
      xi[at] = c[k] * i_re - s[k] * j_re;
      xj[at] = s[k] * i_re + c[k] * j_re;
    }
  }
}

template <bool Pairs, Index Stride, class S>
HWY_INLINE void rotate_back(const GivensLayers<S>& layers, const GivensRun& run, S* y) {
  const Index n = layers.n;
  const S *c = layers.c.data() + run.first, *s = layers.s.data() + run.first;
  [[maybe_unused]] const S* er = Pairs ? layers.e_re.data() + run.first : nullptr;
  [[maybe_unused]] const S* ei = Pairs ? layers.e_im.data() + run.first : nullptr;
  S *yi = y + run.i, *yj = yi + (Stride == 2 ? 1 : run.j - run.i);
#pragma GCC ivdep
  for (Index k = 0; k < run.count; ++k) {
    const Index at = k * Stride;
    const S i_re = yi[at], j_re = yj[at], u_re = c[k] * j_re - s[k] * i_re;
    yi[at] = c[k] * i_re + s[k] * j_re;
    if constexpr (Pairs) {
      const S i_im = yi[n + at], j_im = yj[n + at], u_im = c[k] * j_im - s[k] * i_im;
      yi[n + at] = c[k] * i_im + s[k] * j_im;
      yj[at] = er[k] * u_re + ei[k] * u_im;
      yj[n + at] = er[k] * u_im - ei[k] * u_re;
    } else {
      yj[at] = u_re;
    }
  }
}

template <bool Pairs, Index Stride, class S> HWY_INLINE void add_gradient(const GivensLayers<S>& layers,
                                                                          const GivensRun& run, const S* y, const S* g,
                                                                          S* dtheta, S* dphi) {
  const Index n = layers.n;
  const S *c = layers.c.data() + run.first, *s = layers.s.data() + run.first;
  const Index apart = Stride == 2 ? 1 : run.j - run.i;  // known neighbours are loaded together
  const S *yi = y + run.i, *yj = yi + apart, *gi = g + run.i, *gj = gi + apart;
  dtheta += run.first;
  dphi += run.first;
#pragma GCC ivdep
  for (Index k = 0; k < run.count; ++k) {
    const Index at = k * Stride, im = n + at;
    if constexpr (Pairs) {
      dtheta[k] += gj[at] * yi[at] + gj[im] * yi[im] - gi[at] * yj[at] - gi[im] * yj[im];
      const S u_re = c[k] * yj[at] - s[k] * yi[at], u_im = c[k] * yj[im] - s[k] * yi[im];
      const S g_re = c[k] * gj[at] - s[k] * gi[at], g_im = c[k] * gj[im] - s[k] * gi[im];
      dphi[k] += g_im * u_re - g_re * u_im;
    } else {
      dtheta[k] += gj[at] * yi[at] - gi[at] * yj[at];
    }
  }
}

/// KERNEL<Pairs, Stride>(layers, run, …) with the stride of the run.
#define STIEFEL_RUN(KERNEL, ...)                \
  if (run.stride == 1)                          \
    KERNEL<Pairs, 1>(layers, run, __VA_ARGS__); \
  else if (run.stride == 2)                     \
    KERNEL<Pairs, 2>(layers, run, __VA_ARGS__); \
  else                                          \
    KERNEL<Pairs, 4>(layers, run, __VA_ARGS__)

template <bool Pairs, class S> void forward_of(const GivensLayers<S>& layers, S* x) {
  for (const GivensRun& run : layers.runs) {
    STIEFEL_RUN(rotate, x);
  }
}
template <bool Pairs, class S> void inverse_of(const GivensLayers<S>& layers, S* y) {
  for (std::size_t r = layers.runs.size(); r-- > 0;) {
    const GivensRun& run = layers.runs[r];
    STIEFEL_RUN(rotate_back, y);
  }
}
template <bool Pairs, class S> void pullback_of(const GivensLayers<S>& layers, S* y, S* g, S* dtheta, S* dphi) {
  for (std::size_t r = layers.runs.size(); r-- > 0;) {
    const GivensRun& run = layers.runs[r];
    STIEFEL_RUN(add_gradient, y, g, dtheta, dphi);
    STIEFEL_RUN(rotate_back, y);
    STIEFEL_RUN(rotate_back, g);
  }
}
#undef STIEFEL_RUN

#define STIEFEL_FOR(S)                                                               \
  void forward_##S(const GivensLayers<S>& layers, S* x) {                            \
    layers.e_re.size() ? forward_of<true>(layers, x) : forward_of<false>(layers, x); \
  }                                                                                  \
  void inverse_##S(const GivensLayers<S>& layers, S* y) {                            \
    layers.e_re.size() ? inverse_of<true>(layers, y) : inverse_of<false>(layers, y); \
  }                                                                                  \
  void pullback_##S(const GivensLayers<S>& layers, S* y, S* g, S* dtheta, S* dphi) { \
    layers.e_re.size() ? pullback_of<true>(layers, y, g, dtheta, dphi)               \
                       : pullback_of<false>(layers, y, g, dtheta, dphi);             \
  }
STIEFEL_FOR(float)
STIEFEL_FOR(double)
#undef STIEFEL_FOR

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

#define STIEFEL_DISPATCH(S)                                                                         \
  HWY_EXPORT(forward_##S);                                                                          \
  HWY_EXPORT(inverse_##S);                                                                          \
  HWY_EXPORT(pullback_##S);                                                                         \
  template <> void givens_forward(const GivensLayers<S>& layers, S* x) {                            \
    HWY_DYNAMIC_DISPATCH(forward_##S)(layers, x);                                                   \
  }                                                                                                 \
  template <> void givens_inverse(const GivensLayers<S>& layers, S* y) {                            \
    HWY_DYNAMIC_DISPATCH(inverse_##S)(layers, y);                                                   \
  }                                                                                                 \
  template <> void givens_pullback(const GivensLayers<S>& layers, S* y, S* g, S* dtheta, S* dphi) { \
    HWY_DYNAMIC_DISPATCH(pullback_##S)(layers, y, g, dtheta, dphi);                                 \
  }
STIEFEL_DISPATCH(float)
STIEFEL_DISPATCH(double)

}  // namespace stiefel
#endif
