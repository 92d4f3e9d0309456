// OPLU: a pair of rows (a, b) becomes (max, min); the pullback is the same permutation, so norms are preserved both ways.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sdk/activations/oplu.cpp"
#include "sdk/kernel/simd_targets.hpp"
// Every class is compiled for every SIMD target; the makers choose.
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before this one.
#include <hwy/highway.h>

#include "sdk/activations/activations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace {

template <class S> class Oplu final : public Activation<S> {
 public:
  /// Pair k is made of the rows k·step and k·step + distance.
  Oplu(bool halves, Index rows) : pairs_(rows / 2), step_(halves ? 1 : 2), distance_(halves ? rows / 2 : 1) {}
  bool keeps_input() const override { return true; }

  void forward(CMat<S> a, Mat<S> h, CBlocks<S>) const override {
    for (Index j = 0; j < a.cols(); ++j) {
      const S* x = a.data() + j * a.outerStride();
      S* y = h.data() + j * h.outerStride();
#pragma GCC ivdep
      for (Index k = 0; k < pairs_; ++k) {
        const S first = x[k * step_], second = x[k * step_ + distance_];
        y[k * step_] = first < second ? second : first;
        y[k * step_ + distance_] = first < second ? first : second;
      }
    }
  }

  void backward(CMat<S> a, CMat<S>, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S>) const override {
    for (Index j = 0; j < a.cols(); ++j) {
      const S* x = a.data() + j * a.outerStride();
      const S* dy = dh.data() + j * dh.outerStride();
      S* dx = da.data() + j * da.outerStride();
#pragma GCC ivdep
      for (Index k = 0; k < pairs_; ++k) {
        const bool swapped = x[k * step_] < x[k * step_ + distance_];
        const S larger = dy[k * step_], smaller = dy[k * step_ + distance_];
        dx[k * step_] = swapped ? smaller : larger;
        dx[k * step_ + distance_] = swapped ? larger : smaller;
      }
    }
  }

  double kink_distance(CMat<S> a, CMat<S>, CBlocks<S>) const override {
    double distance = std::numeric_limits<double>::infinity();
    for (Index j = 0; j < a.cols(); ++j)
      for (Index k = 0; k < pairs_; ++k)  // the kink is the line a = b, at |a − b|/√2
        distance = std::min(distance, std::abs(double(a(k * step_, j) - a(k * step_ + distance_, j))) / std::sqrt(2.0));
    return distance;
  }

 private:
  Index pairs_, step_, distance_;
};

template <class S> std::unique_ptr<Activation<S>> new_oplu(const ActivationOptions& options, Index rows) {
  if (rows % 2 != 0)
    throw Error("oplu takes rows in pairs and needs an even number of rows, not " + std::to_string(rows) + "; change `hidden` by one");
  return std::make_unique<Oplu<S>>(options.pairing == "halves", rows);
}

}  // namespace

std::unique_ptr<Activation<float>> oplu_float(const ActivationOptions& options, Index rows) { return new_oplu<float>(options, rows); }
std::unique_ptr<Activation<double>> oplu_double(const ActivationOptions& options, Index rows) { return new_oplu<double>(options, rows); }

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

HWY_EXPORT(oplu_float);
HWY_EXPORT(oplu_double);

template <> std::unique_ptr<Activation<float>> make_oplu(const ActivationOptions& options, Index rows) {
  return HWY_DYNAMIC_DISPATCH(oplu_float)(options, rows);
}
template <> std::unique_ptr<Activation<double>> make_oplu(const ActivationOptions& options, Index rows) {
  return HWY_DYNAMIC_DISPATCH(oplu_double)(options, rows);
}

}  // namespace stiefel
#endif
