// Loops without branches, which the compiler vectorises for every SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cells/lstm_loops.cpp"
// Vectors whose size is unknown to the compiler cannot be array elements; SSSE3 without SSE4 hardly exists.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before this one.
#include <hwy/highway.h>

#include <stiefel/cell.hpp>
#include "lstm_loops.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace {

using Part = LstmColumn;

template <class S> void state(S* column, const S* last, Index n) {
  const S *i = column + Part::input * n, *f = column + Part::forget * n, *q = column + Part::candidate * n;
  S* c = column + Part::state * n;
#pragma GCC ivdep
  for (Index k = 0; k < n; ++k) c[k] = f[k] * last[k] + i[k] * q[k];
}

template <class S> void output(S* column, Index n) {
  const S *o = column + Part::output * n, *tanh_c = column + Part::tanh_state * n;
  S* h = column + Part::hidden * n;
#pragma GCC ivdep
  for (Index k = 0; k < n; ++k) h[k] = o[k] * tanh_c[k];
}

template <class S> void output_pullback(const S* column, const S* g, S* e, S* delta, S bound, Index n) {
  const S *o = column + Part::output * n, *tanh_c = column + Part::tanh_state * n;
  S* delta_o = delta + Part::output * n;
#pragma GCC ivdep
  for (Index k = 0; k < n; ++k) {
    delta_o[k] = clipped(g[k] * tanh_c[k] * o[k] * (1 - o[k]), bound);
    e[k] += g[k] * o[k] * (1 - tanh_c[k] * tanh_c[k]);
  }
}

template <class S> void state_pullback(const S* column, const S* last, S* e, S* delta, S bound, Index n) {
  const S *i = column + Part::input * n, *f = column + Part::forget * n, *q = column + Part::candidate * n;
  S *delta_i = delta + Part::input * n, *delta_f = delta + Part::forget * n, *delta_q = delta + Part::candidate * n;
#pragma GCC ivdep
  for (Index k = 0; k < n; ++k) {
    delta_i[k] = clipped(e[k] * q[k] * i[k] * (1 - i[k]), bound);
    delta_f[k] = clipped(e[k] * last[k] * f[k] * (1 - f[k]), bound);
    delta_q[k] = clipped(e[k] * i[k] * (1 - q[k] * q[k]), bound);
    e[k] *= f[k];
  }
}

template <class S> void add_product(const S* x, const S* y, S* sum, Index n) {
#pragma GCC ivdep
  for (Index k = 0; k < n; ++k) sum[k] += x[k] * y[k];
}

template <class S>
constexpr LstmLoops<S> loops{state<S>, output<S>, output_pullback<S>, state_pullback<S>, add_product<S>};

}  // namespace

const LstmLoops<float>* loops_float() { return &loops<float>; }
const LstmLoops<double>* loops_double() { return &loops<double>; }

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

HWY_EXPORT(loops_float);
HWY_EXPORT(loops_double);

template <> const LstmLoops<float>& lstm_loops() { return *HWY_DYNAMIC_DISPATCH(loops_float)(); }
template <> const LstmLoops<double>& lstm_loops() { return *HWY_DYNAMIC_DISPATCH(loops_double)(); }

}  // namespace stiefel
#endif
