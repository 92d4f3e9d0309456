// vector_exp, vector_sigmoid, vector_tanh: Highway's exponential with the limits put right, per SIMD target.
//
//   sigmoid x = 1/(1 + e) for x ≥ 0 and e/(1 + e) for x < 0, with e = exp(−|x|): never a difference of nearly equal
//     numbers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sdk/kernel/vector_math.cpp"
#include "sdk/kernel/simd_targets.hpp"
// It chooses the targets, so it stands before the next one.
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before these two.
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include <algorithm>

#include <stiefel/matrix.hpp>
#include <stiefel/vector_math.hpp>
#include "sdk/require.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Highway's Exp is zero for NaN, and beyond its range its integer arithmetic wraps round.
struct Exp {
  template <class D, class V> HWY_INLINE V operator()(D d, V x) const {
    using S = hn::TFromD<D>;
    const V largest = hn::Set(d, sizeof(S) == 4 ? S(100) : S(720));    // e^largest is ∞
    const V bounded = hn::IfThenElse(hn::Lt(x, largest), x, largest);  // never NaN
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, bounded));
  }
};

struct Sigmoid {
  template <class D, class V> HWY_INLINE V operator()(D d, V x) const {
    const V one = hn::Set(d, hn::TFromD<D>(1));
    const V e = Exp()(d, hn::Neg(hn::Abs(x)));
    return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  }
};

struct Tanh {
  template <class D, class V> HWY_INLINE V operator()(D d, V x) const { return hn::Tanh(d, x); }
};

/// y = f(x); the remainder that does not fill a vector passes through a separate one.
template <class S, class Function> HWY_INLINE void map(const S* x, S* y, Index size, Function function) {
  const hn::ScalableTag<S> d;
  const Index lanes = Index(hn::Lanes(d)), body = size - size % lanes;
  for (Index i = 0; i < body; i += lanes) hn::StoreU(function(d, hn::LoadU(d, x + i)), d, y + i);
  if (body == size) return;
  HWY_ALIGN S rest[hn::MaxLanes(d)] = {};
  std::copy(x + body, x + size, rest);
  hn::Store(function(d, hn::Load(d, rest)), d, rest);
  std::copy_n(rest, size - body, y + body);
}

void exp_float(const float* x, float* y, Index size) { map(x, y, size, Exp()); }
void exp_double(const double* x, double* y, Index size) { map(x, y, size, Exp()); }
void sigmoid_float(const float* x, float* y, Index size) { map(x, y, size, Sigmoid()); }
void sigmoid_double(const double* x, double* y, Index size) { map(x, y, size, Sigmoid()); }
void tanh_float(const float* x, float* y, Index size) { map(x, y, size, Tanh()); }
void tanh_double(const double* x, double* y, Index size) { map(x, y, size, Tanh()); }

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

HWY_EXPORT(exp_float);
HWY_EXPORT(exp_double);
HWY_EXPORT(sigmoid_float);
HWY_EXPORT(sigmoid_double);
HWY_EXPORT(tanh_float);
HWY_EXPORT(tanh_double);

namespace {
template <class S, class Function> void call(Function function, std::span<const S> x, std::span<S> y) {
  require(x.size() == y.size(), "a function of {} numbers cannot have {} results", x.size(), y.size());
  function(x.data(), y.data(), Index(x.size()));
}
}  // namespace

template <> void vector_exp(std::span<const float> x, std::span<float> y) {
  call(HWY_DYNAMIC_DISPATCH(exp_float), x, y);
}
template <> void vector_exp(std::span<const double> x, std::span<double> y) {
  call(HWY_DYNAMIC_DISPATCH(exp_double), x, y);
}
template <> void vector_sigmoid(std::span<const float> x, std::span<float> y) {
  call(HWY_DYNAMIC_DISPATCH(sigmoid_float), x, y);
}
template <> void vector_sigmoid(std::span<const double> x, std::span<double> y) {
  call(HWY_DYNAMIC_DISPATCH(sigmoid_double), x, y);
}
template <> void vector_tanh(std::span<const float> x, std::span<float> y) {
  call(HWY_DYNAMIC_DISPATCH(tanh_float), x, y);
}
template <> void vector_tanh(std::span<const double> x, std::span<double> y) {
  call(HWY_DYNAMIC_DISPATCH(tanh_double), x, y);
}

}  // namespace stiefel
#endif
