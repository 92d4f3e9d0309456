// modReLU of real numbers: h = sign(a)·max(|a| + b, 0), with b replaced by b + ε in the forms eu (ε = 0.01) and goru (0.001).
//
//   da = dh·[h ≠ 0]     db = Σ sign(h)·dh     sign(0) = 0
//
// h tells all that the pullback needs: where the entry lives, h has the sign of a. In the forms with ε > −b, h jumps at a = 0.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sdk/activations/modrelu_sign.cpp"
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

template <class S> class SignModrelu final : public Activation<S> {
 public:
  SignModrelu(const ActivationOptions& options, Index rows) : options_(options), rows_(rows) {
    if (options.form == "eu") shift_ = S(options.epsilon > 0 ? options.epsilon : 0.01);
    if (options.form == "goru") shift_ = S(options.epsilon > 0 ? options.epsilon : 0.001);
  }
  std::vector<BlockSpec> blocks() const override { return {modrelu_bias(rows_)}; }
  void initialise(Blocks<S> theta, Rng& rng) const override { initialise_modrelu_bias(options_, theta[0], rng); }
  bool keeps_input() const override { return false; }

  void forward(CMat<S> a, Mat<S> h, CBlocks<S> theta) const override {
    const S* bias = theta[0].data();
    const S shift = shift_;
    for (Index j = 0; j < a.cols(); ++j) {
      const S* x = a.data() + j * a.outerStride();
      S* y = h.data() + j * h.outerStride();
#pragma GCC ivdep
      for (Index i = 0; i < rows_; ++i) {
        const S modulus = x[i] < 0 ? -x[i] : x[i];
        const S length = modulus + (bias[i] + shift);
        const S alive = length <= 0 ? S(0) : length;  // a NaN stays one
        const S positive = x[i] == 0 ? S(0) : alive;
        y[i] = x[i] < 0 ? -positive : positive;
      }
    }
  }

  void backward(CMat<S>, CMat<S> h, CMat<S> dh, Mat<S> da, CBlocks<S>, Blocks<S> dtheta) const override {
    S* db = dtheta.count() > 0 ? dtheta[0].data() : nullptr;
    for (Index j = 0; j < h.cols(); ++j) {
      const S* y = h.data() + j * h.outerStride();
      const S* dy = dh.data() + j * dh.outerStride();
      S* dx = da.data() + j * da.outerStride();
      if (db)
#pragma GCC ivdep
        for (Index i = 0; i < rows_; ++i) {
          const S g = dy[i];
          db[i] += y[i] > 0 ? g : y[i] < 0 ? -g : S(0);
        }
#pragma GCC ivdep
      for (Index i = 0; i < rows_; ++i) {
        const S g = dy[i];
        dx[i] = y[i] == 0 ? S(0) : g;
      }
    }
  }

  double kink_distance(CMat<S>, CMat<S> h, CBlocks<S> theta) const override {
    double distance = std::numeric_limits<double>::infinity();
    for (Index j = 0; j < h.cols(); ++j)
      for (Index i = 0; i < rows_; ++i)
        if (h(i, j) != 0)
          distance = std::min(distance, std::abs(double(h(i, j))) - std::max(0.0, double(theta[0][std::size_t(i)] + shift_)));
    return distance;
  }

 private:
  ActivationOptions options_;
  Index rows_;
  S shift_ = 0;
};

template <class S> std::unique_ptr<Activation<S>> new_sign_modrelu(const ActivationOptions& options, Index rows) {
  return std::make_unique<SignModrelu<S>>(options, rows);
}

}  // namespace

std::unique_ptr<Activation<float>> sign_modrelu_float(const ActivationOptions& options, Index rows) {
  return new_sign_modrelu<float>(options, rows);
}
std::unique_ptr<Activation<double>> sign_modrelu_double(const ActivationOptions& options, Index rows) {
  return new_sign_modrelu<double>(options, rows);
}

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

HWY_EXPORT(sign_modrelu_float);
HWY_EXPORT(sign_modrelu_double);

template <> std::unique_ptr<Activation<float>> make_sign_modrelu(const ActivationOptions& options, Index rows) {
  return HWY_DYNAMIC_DISPATCH(sign_modrelu_float)(options, rows);
}
template <> std::unique_ptr<Activation<double>> make_sign_modrelu(const ActivationOptions& options, Index rows) {
  return HWY_DYNAMIC_DISPATCH(sign_modrelu_double)(options, rows);
}

}  // namespace stiefel
#endif
