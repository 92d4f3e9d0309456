// Activations that look at one entry at a time.
//
//   identity    h = a                           da = dh
//   tanh        h = tanh a                      da = dh (1 − h²)
//   relu        h = max(a, 0)                   da = dh [h > 0]
//   leaky_relu  h = max(a, 0) + s·min(a, 0)     da = dh (1 or s)
//   prelu       the same with a learned s       da = dh (1 or s),   ds = Σ dh·min(a, 0)
//
// relu and leaky_relu have the right derivative 1, s, … from the left at 0. No column is treated differently from another.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sdk/activations/elementwise.cpp"
#include "sdk/kernel/simd_targets.hpp"
// Every class is compiled for every SIMD target; the makers choose.
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before this one.
#include <hwy/highway.h>

#include "sdk/activations/activations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stiefel/vector_math.hpp>

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace {

/// out(i, j) = f(x(i, j), y(i, j)), where `out` may be the memory of x or of y.
template <class S, class F> void map_entries(CMat<S> x, CMat<S> y, Mat<S> out, F f) {
  const Index rows = out.rows();
  for (Index j = 0; j < out.cols(); ++j) {
    const S* from = x.data() + j * x.outerStride();
    const S* other = y.data() + j * y.outerStride();
    S* to = out.data() + j * out.outerStride();
#pragma GCC ivdep
    for (Index i = 0; i < rows; ++i) to[i] = f(from[i], other[i]);
  }
}

template <class S> class Identity final : public Activation<S> {
 public:
  bool keeps_input() const override { return false; }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S>) const override {
    if (h.data() != a.data()) h = a;
  }
  void backward(CMat<S>, CMat<S>, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S>) const override {
    if (da.data() != dh.data()) da = dh;
  }
};

template <class S> class Tanh final : public Activation<S> {
 public:
  bool keeps_input() const override { return false; }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S>) const override {
    const auto rows = std::size_t(a.rows());
    for (Index j = 0; j < a.cols(); ++j) vector_tanh<S>({a.col(j).data(), rows}, {h.col(j).data(), rows});
  }
  void backward(CMat<S>, CMat<S> h, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S>) const override {
    da.array() = dh.array() * (S(1) - h.array().square());
  }
};

template <class S> class Relu final : public Activation<S> {
 public:
  bool keeps_input() const override { return false; }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S>) const override {
    map_entries<S>(a, a, h, [](S x, S) { return x <= 0 ? S(0) : x; });  // NaN stays NaN
  }
  void backward(CMat<S>, CMat<S> h, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S>) const override {
    map_entries<S>(dh, h, da, [](S dy, S y) { return y > 0 ? dy : S(0); });
  }
  double kink_distance(CMat<S>, CMat<S> h, CBlocks<S>) const override {
    double distance = std::numeric_limits<double>::infinity();
    for (Index j = 0; j < h.cols(); ++j)
      for (Index i = 0; i < h.rows(); ++i)
        if (h(i, j) > 0) distance = std::min(distance, double(h(i, j)));
    return distance;
  }
};

/// The sign of h is that of a only for a positive slope, so a is kept otherwise.
template <class S> class LeakyRelu final : public Activation<S> {
 public:
  explicit LeakyRelu(double slope) : slope_(S(slope)) {}
  bool keeps_input() const override { return !(slope_ > 0); }
  void forward(CMat<S> a, Mat<S> h, CBlocks<S>) const override {
    map_entries<S>(a, a, h, [s = slope_](S x, S) { return x > 0 ? x : s * x; });
  }
  void backward(CMat<S> a, CMat<S> h, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S>) const override {
    map_entries<S>(dh, keeps_input() ? a : h, da, [s = slope_](S dy, S x) { return x > 0 ? dy : s * dy; });
  }
  double kink_distance(CMat<S> a, CMat<S> h, CBlocks<S>) const override {
    double distance = std::numeric_limits<double>::infinity();
    for (Index j = 0; j < h.cols(); ++j)
      for (Index i = 0; i < h.rows(); ++i) {
        const double x = keeps_input() ? double(a(i, j)) : h(i, j) > 0 ? double(h(i, j)) : double(h(i, j) / slope_);
        distance = std::min(distance, std::abs(x));
      }
    return distance;
  }

 private:
  S slope_;
};

template <class S> class Prelu final : public Activation<S> {
 public:
  Prelu(const ActivationOptions& options, Index rows) : slope_(options.slope), slopes_(options.shared ? 1 : rows) {}
  std::vector<BlockSpec> blocks() const override { return {{"slope", slopes_}}; }
  void initialise(Blocks<S> theta, Rng&) const override { std::ranges::fill(theta[0], S(slope_)); }
  bool keeps_input() const override { return true; }

  void forward(CMat<S> a, Mat<S> h, CBlocks<S> theta) const override {
    const auto slope = as_vector(theta[0]);
    for (Index j = 0; j < a.cols(); ++j) {
      if (slopes_ == 1)
        h.col(j).array() = a.col(j).array().max(S(0)) + slope[0] * a.col(j).array().min(S(0));
      else
        h.col(j).array() = a.col(j).array().max(S(0)) + slope.array() * a.col(j).array().min(S(0));
    }
  }

  void backward(CMat<S> a, CMat<S>, CMat<S> dh, Mat<S> da, CBlocks<S> theta, Blocks<S> dtheta) const override {
    if (dtheta.count() > 0) add_slope_gradient(a, dh, dtheta[0]);
    const auto slope = as_vector(theta[0]);
    if (slopes_ == 1) return map_entries<S>(a, dh, da, [s = slope[0]](S x, S g) { return x > 0 ? g : s * g; });
    for (Index j = 0; j < a.cols(); ++j)
      da.col(j).array() = (a.col(j).array() > S(0)).select(dh.col(j).array(), slope.array() * dh.col(j).array());
  }

  double kink_distance(CMat<S> a, CMat<S>, CBlocks<S>) const override {
    return a.size() ? double(a.cwiseAbs().minCoeff()) : std::numeric_limits<double>::infinity();
  }

 private:
  void add_slope_gradient(CMat<S> a, CMat<S> dh, std::span<S> dslope) const {
    for (Index j = 0; j < a.cols(); ++j) {
      if (slopes_ == 1)
        dslope[0] += (dh.col(j).array() * a.col(j).array().min(S(0))).sum();
      else
        as_vector(dslope).array() += dh.col(j).array() * a.col(j).array().min(S(0));
    }
  }

  double slope_;
  Index slopes_;
};

template <class S> std::unique_ptr<Activation<S>> new_identity() { return std::make_unique<Identity<S>>(); }
template <class S> std::unique_ptr<Activation<S>> new_tanh() { return std::make_unique<Tanh<S>>(); }
template <class S> std::unique_ptr<Activation<S>> new_relu() { return std::make_unique<Relu<S>>(); }
template <class S> std::unique_ptr<Activation<S>> new_leaky_relu(double slope) { return std::make_unique<LeakyRelu<S>>(slope); }
template <class S> std::unique_ptr<Activation<S>> new_prelu(const ActivationOptions& options, Index rows) {
  // A slope that is not learned needs no parameters.
  if (!options.trainable) return new_leaky_relu<S>(options.slope);
  return std::make_unique<Prelu<S>>(options, rows);
}

}  // namespace

std::unique_ptr<Activation<float>> identity_float() { return new_identity<float>(); }
std::unique_ptr<Activation<double>> identity_double() { return new_identity<double>(); }
std::unique_ptr<Activation<float>> tanh_float() { return new_tanh<float>(); }
std::unique_ptr<Activation<double>> tanh_double() { return new_tanh<double>(); }
std::unique_ptr<Activation<float>> relu_float() { return new_relu<float>(); }
std::unique_ptr<Activation<double>> relu_double() { return new_relu<double>(); }
std::unique_ptr<Activation<float>> leaky_relu_float(double slope) { return new_leaky_relu<float>(slope); }
std::unique_ptr<Activation<double>> leaky_relu_double(double slope) { return new_leaky_relu<double>(slope); }
std::unique_ptr<Activation<float>> prelu_float(const ActivationOptions& options, Index rows) { return new_prelu<float>(options, rows); }
std::unique_ptr<Activation<double>> prelu_double(const ActivationOptions& options, Index rows) { return new_prelu<double>(options, rows); }

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

HWY_EXPORT(identity_float);
HWY_EXPORT(identity_double);
HWY_EXPORT(tanh_float);
HWY_EXPORT(tanh_double);
HWY_EXPORT(relu_float);
HWY_EXPORT(relu_double);
HWY_EXPORT(leaky_relu_float);
HWY_EXPORT(leaky_relu_double);
HWY_EXPORT(prelu_float);
HWY_EXPORT(prelu_double);

template <> std::unique_ptr<Activation<float>> make_identity() { return HWY_DYNAMIC_DISPATCH(identity_float)(); }
template <> std::unique_ptr<Activation<double>> make_identity() { return HWY_DYNAMIC_DISPATCH(identity_double)(); }
template <> std::unique_ptr<Activation<float>> make_tanh() { return HWY_DYNAMIC_DISPATCH(tanh_float)(); }
template <> std::unique_ptr<Activation<double>> make_tanh() { return HWY_DYNAMIC_DISPATCH(tanh_double)(); }
template <> std::unique_ptr<Activation<float>> make_relu() { return HWY_DYNAMIC_DISPATCH(relu_float)(); }
template <> std::unique_ptr<Activation<double>> make_relu() { return HWY_DYNAMIC_DISPATCH(relu_double)(); }
template <> std::unique_ptr<Activation<float>> make_leaky_relu(double slope) { return HWY_DYNAMIC_DISPATCH(leaky_relu_float)(slope); }
template <> std::unique_ptr<Activation<double>> make_leaky_relu(double slope) { return HWY_DYNAMIC_DISPATCH(leaky_relu_double)(slope); }
template <> std::unique_ptr<Activation<float>> make_prelu(const ActivationOptions& options, Index rows) {
  return HWY_DYNAMIC_DISPATCH(prelu_float)(options, rows);
}
template <> std::unique_ptr<Activation<double>> make_prelu(const ActivationOptions& options, Index rows) {
  return HWY_DYNAMIC_DISPATCH(prelu_double)(options, rows);
}

}  // namespace stiefel
#endif
