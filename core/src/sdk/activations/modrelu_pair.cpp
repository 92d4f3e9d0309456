// modReLU of complex numbers z = (row i) + i·(row i + n/2), ρ = |z|: h = f(ρ)·z, with one real bias b for each number.
//
//   form      f where its numerator is positive, else 0     f'(ρ)                  ∂f/∂b
//   exact     (ρ + b)/ρ, 0 at z = 0                         −b/ρ²                  1/ρ       (Arjovsky et al. 2016, eq. 8)
//   arj       (ρ + b)/(ρ + ε)          ε = 1e-5             (ε − b)/(ρ + ε)²       1/(ρ + ε)
//   wis       (r + b)/(r + ε)          ε = 1e-5             (ε − b)ρ/(r(r + ε)²)   1/(r + ε)   r = √(ε + ρ²)
//   eu        (r + b)/r                ε = 0.01             −b/r²                  1/r         r = ρ + ε
//   squared   (ρ² + b)/ρ²                                   −2b/ρ³                 1/ρ²        (ρ² in place of ρ, a released slip)
//
//   dz = f·dh + ρ f'(ρ)·Re(ū dh)·u, u = z/ρ          db = ∂f/∂b·Re(z̄ dh)
//
// The loops are branchless so that they are vectorised; numbers so small that ρ² underflows count as z = 0.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sdk/activations/modrelu_pair.cpp"
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

/// Factor f, its derivative with respect to b, and the radial term turn·Re(z̄s dh)·zs, where s = `unit` scales z.
template <class S> struct Radial { S f, df_db, turn, unit; };

template <class S> S select(bool condition, S yes, S no) { return condition ? yes : no; }

struct Exact {
  static constexpr bool singular = true;  // no derivative at z = 0
  template <class S> static Radial<S> at(S q, S b, S) {
    const S rho = std::sqrt(q), inverse = S(1) / select(rho > 0, rho, S(1));
    const S alive = select((rho > 0) & (rho + b > 0), S(1), S(0));
    return {alive * (rho + b) * inverse, alive * inverse, alive * -b * inverse, inverse};
  }
  static double edge(double b, double) { return -b; }
};

struct Arj {
  static constexpr bool singular = true;
  template <class S> static Radial<S> at(S q, S b, S epsilon) {
    const S rho = std::sqrt(q), inverse = S(1) / (rho + epsilon);
    const S alive = select(rho + b > 0, S(1), S(0));
    return {alive * (rho + b) * inverse, alive * inverse, alive * (epsilon - b) * inverse * inverse * rho,
            S(1) / select(rho > 0, rho, S(1))};
  }
  static double edge(double b, double) { return -b; }
};

struct Wis {
  static constexpr bool singular = false;
  template <class S> static Radial<S> at(S q, S b, S epsilon) {
    const S r = std::sqrt(epsilon + q), inverse = S(1) / (r + epsilon);
    const S alive = select(r + b > 0, S(1), S(0));
    return {alive * (r + b) * inverse, alive * inverse, alive * (epsilon - b) * inverse * inverse / r, S(1)};
  }
  static double edge(double b, double epsilon) { return b < 0 && b * b > epsilon ? std::sqrt(b * b - epsilon) : 0; }
};

struct Eu {
  static constexpr bool singular = true;
  template <class S> static Radial<S> at(S q, S b, S epsilon) {
    const S rho = std::sqrt(q), r = rho + epsilon, inverse = S(1) / r;
    const S alive = select(r + b > 0, S(1), S(0));
    return {alive * (r + b) * inverse, alive * inverse, alive * -b * inverse * inverse * rho, S(1) / select(rho > 0, rho, S(1))};
  }
  static double edge(double b, double epsilon) { return -b - epsilon; }
};

struct Squared {
  static constexpr bool singular = true;
  template <class S> static Radial<S> at(S q, S b, S) {
    const bool normal = q >= std::numeric_limits<S>::min();
    const S inverse = S(1) / select(normal, q, S(1));
    const S alive = select(normal & (q + b > 0), S(1), S(0));
    return {alive * (q + b) * inverse, alive * inverse, alive * S(-2) * b * inverse, std::sqrt(inverse)};
  }
  static double edge(double b, double) { return b < 0 ? std::sqrt(-b) : 0; }
};

template <class S, class Form> class PairModrelu final : public Activation<S> {
 public:
  PairModrelu(const ActivationOptions& options, Index rows, double epsilon)
      : options_(options), pairs_(rows / 2), epsilon_(S(options.epsilon > 0 ? options.epsilon : epsilon)) {}
  std::vector<BlockSpec> blocks() const override { return {modrelu_bias(pairs_)}; }
  void initialise(Blocks<S> theta, Rng& rng) const override { initialise_modrelu_bias(options_, theta[0], rng); }
  bool keeps_input() const override { return true; }

  void forward(CMat<S> a, Mat<S> h, CBlocks<S> theta) const override {
    const S* bias = theta[0].data();
    for (Index j = 0; j < a.cols(); ++j) {
      const S *re = a.data() + j * a.outerStride(), *im = re + pairs_;
      S *real = h.data() + j * h.outerStride(), *imaginary = real + pairs_;
#pragma GCC ivdep
      for (Index i = 0; i < pairs_; ++i) {
        const S x = re[i], y = im[i], f = Form::at(x * x + y * y, bias[i], epsilon_).f;
        real[i] = f * x;
        imaginary[i] = f * y;
      }
    }
  }

  void backward(CMat<S> a, CMat<S>, CMat<S> dh, Mat<S> da, CBlocks<S> theta, Blocks<S> dtheta) const override {
    const S* bias = theta[0].data();
    for (Index j = 0; j < a.cols(); ++j) {
      const S *z = a.data() + j * a.outerStride(), *g = dh.data() + j * dh.outerStride();
      S* d = da.data() + j * da.outerStride();
      dtheta.count() > 0 ? pull_back<true>(z, g, d, bias, dtheta[0].data()) : pull_back<false>(z, g, d, bias, nullptr);
    }
  }

  double kink_distance(CMat<S> a, CMat<S>, CBlocks<S> theta) const override {
    double distance = std::numeric_limits<double>::infinity();
    for (Index j = 0; j < a.cols(); ++j)
      for (Index i = 0; i < pairs_; ++i) {
        const double rho = std::hypot(double(a(i, j)), double(a(i + pairs_, j)));
        const double edge = Form::edge(double(theta[0][std::size_t(i)]), double(epsilon_));
        if (Form::singular) distance = std::min(distance, rho);
        if (edge > 0) distance = std::min(distance, std::abs(rho - edge));
      }
    return distance;
  }

 private:
  template <bool learns> void pull_back(const S* re, const S* dre, S* dx, const S* bias, S* db) const {
    const S *im = re + pairs_, *dim = dre + pairs_;
    S* dy = dx + pairs_;
#pragma GCC ivdep
    for (Index i = 0; i < pairs_; ++i) {
      const S x = re[i], y = im[i], gx = dre[i], gy = dim[i];
      const Radial<S> radial = Form::at(x * x + y * y, bias[i], epsilon_);
      if constexpr (learns) db[i] += radial.df_db * (x * gx + y * gy);
      const S ux = x * radial.unit, uy = y * radial.unit;
      const S along = radial.turn * (ux * gx + uy * gy);
      dx[i] = radial.f * gx + along * ux;
      dy[i] = radial.f * gy + along * uy;
    }
  }

  ActivationOptions options_;
  Index pairs_;
  S epsilon_;
};

template <class S> std::unique_ptr<Activation<S>> new_pair_modrelu(const ActivationOptions& options, Index rows) {
  if (options.form == "arj") return std::make_unique<PairModrelu<S, Arj>>(options, rows, 1e-5);
  if (options.form == "wis") return std::make_unique<PairModrelu<S, Wis>>(options, rows, 1e-5);
  if (options.form == "eu") return std::make_unique<PairModrelu<S, Eu>>(options, rows, 0.01);
  if (options.form == "squared") return std::make_unique<PairModrelu<S, Squared>>(options, rows, 0);
  return std::make_unique<PairModrelu<S, Exact>>(options, rows, 0);
}

}  // namespace

std::unique_ptr<Activation<float>> pair_modrelu_float(const ActivationOptions& options, Index rows) {
  return new_pair_modrelu<float>(options, rows);
}
std::unique_ptr<Activation<double>> pair_modrelu_double(const ActivationOptions& options, Index rows) {
  return new_pair_modrelu<double>(options, rows);
}

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

HWY_EXPORT(pair_modrelu_float);
HWY_EXPORT(pair_modrelu_double);

template <> std::unique_ptr<Activation<float>> make_pair_modrelu(const ActivationOptions& options, Index rows) {
  return HWY_DYNAMIC_DISPATCH(pair_modrelu_float)(options, rows);
}
template <> std::unique_ptr<Activation<double>> make_pair_modrelu(const ActivationOptions& options, Index rows) {
  return HWY_DYNAMIC_DISPATCH(pair_modrelu_double)(options, rows);
}

}  // namespace stiefel
#endif
