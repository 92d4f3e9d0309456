// Loops without branches, which the compiler vectorises for every SIMD target. The formulas are next to the classes in
// activation.cpp.
//
// modReLU of complex numbers z = (row i) + i·(row i + n/2), ρ = |z|: h = f(ρ)·z, with one real bias b for each number.
//
//   form      f where its numerator is positive, else 0     f'(ρ)                  ∂f/∂b
//   exact     (ρ + b)/ρ, 0 at z = 0                         −b/ρ²                  1/ρ   (Arjovsky et al. 2016, eq. 8)
//   arj       (ρ + b)/(ρ + ε)          ε = 1e-5             (ε − b)/(ρ + ε)²       1/(ρ + ε)
//   wis       (r + b)/(r + ε)          ε = 1e-5             (ε − b)ρ/(r(r + ε)²)   1/(r + ε)   r = √(ε + ρ²)
//   eu        (r + b)/r                ε = 0.01             −b/r²                  1/r         r = ρ + ε
//   squared   (ρ² + b)/ρ²                                   −2b/ρ³                 1/ρ²        (a released slip: ρ² for ρ)
//
//   dz = f·dh + ρ f'(ρ)·Re(ū dh)·u, u = z/ρ          db = ∂f/∂b·Re(z̄ dh)
//
// Numbers so small that ρ² underflows count as z = 0.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sdk/kernel/activation_kernels.cpp"
#include "sdk/kernel/simd_targets.hpp"
// It chooses the targets, so it stands before the next one.
#include <hwy/foreach_target.h>
// foreach_target.h includes this file again, so it must stand before this one.
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "sdk/kernel/activation_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace stiefel::HWY_NAMESPACE {
namespace {

/// out(i, j) = f(x(i, j), y(i, j), i), where `out` may be the memory of x or of y.
template <class S, class F> void map_entries(CMat<S> x, CMat<S> y, Mat<S> out, F f) {
  const Index rows = out.rows();
  for (Index j = 0; j < out.cols(); ++j) {
    const S* from = x.data() + j * x.outerStride();
    const S* other = y.data() + j * y.outerStride();
    S* to = out.data() + j * out.outerStride();
#pragma GCC ivdep
    for (Index i = 0; i < rows; ++i) to[i] = f(from[i], other[i], i);
  }
}

template <class S> void tanh_pullback(CMat<S> h, CMat<S> dh, Mat<S> da) {
  map_entries<S>(dh, h, da, [](S dy, S y, Index) { return dy * (S(1) - y * y); });
}

template <class S> void relu(CMat<S> a, Mat<S> h) {
  map_entries<S>(a, a, h, [](S x, S, Index) { return x <= 0 ? S(0) : x; });  // NaN stays NaN
}
template <class S> void relu_pullback(CMat<S> h, CMat<S> dh, Mat<S> da) {
  map_entries<S>(dh, h, da, [](S dy, S y, Index) { return y > 0 ? dy : S(0); });
}

template <class S> void leaky(CMat<S> a, Mat<S> h, std::span<const S> slopes) {
  if (slopes.size() == 1)
    map_entries<S>(a, a, h, [s = slopes[0]](S x, S, Index) { return x > 0 ? x : s * x; });
  else
    map_entries<S>(a, a, h, [s = slopes.data()](S x, S, Index i) { return x > 0 ? x : s[i] * x; });
}
template <class S> void leaky_pullback(CMat<S> x, CMat<S> dh, Mat<S> da, std::span<const S> slopes) {
  if (slopes.size() == 1)
    map_entries<S>(dh, x, da, [s = slopes[0]](S dy, S y, Index) { return y > 0 ? dy : s * dy; });
  else
    map_entries<S>(dh, x, da, [s = slopes.data()](S dy, S y, Index i) { return y > 0 ? dy : s[i] * dy; });
}
template <class S> void add_slope_gradient(CMat<S> a, CMat<S> dh, std::span<S> dslopes) {
  for (Index j = 0; j < a.cols(); ++j) {
    if (dslopes.size() == 1)
      dslopes[0] += (dh.col(j).array() * a.col(j).array().min(S(0))).sum();
    else
      as_vector(dslopes).array() += dh.col(j).array() * a.col(j).array().min(S(0));
  }
}

template <class S> void oplu(CMat<S> a, Mat<S> h, Index step, Index distance) {
  const Index pairs = a.rows() / 2;
  for (Index j = 0; j < a.cols(); ++j) {
    const S* x = a.data() + j * a.outerStride();
    S* y = h.data() + j * h.outerStride();
#pragma GCC ivdep
    for (Index k = 0; k < pairs; ++k) {
      const S first = x[k * step], second = x[k * step + distance];
      y[k * step] = first < second ? second : first;
      y[k * step + distance] = first < second ? first : second;
    }
  }
}
template <class S> void oplu_pullback(CMat<S> a, CMat<S> dh, Mat<S> da, Index step, Index distance) {
  const Index pairs = a.rows() / 2;
  for (Index j = 0; j < a.cols(); ++j) {
    const S* x = a.data() + j * a.outerStride();
    const S* dy = dh.data() + j * dh.outerStride();
    S* dx = da.data() + j * da.outerStride();
#pragma GCC ivdep
    for (Index k = 0; k < pairs; ++k) {
      const bool swapped = x[k * step] < x[k * step + distance];
      const S larger = dy[k * step], smaller = dy[k * step + distance];
      dx[k * step] = swapped ? smaller : larger;
      dx[k * step + distance] = swapped ? larger : smaller;
    }
  }
}

template <class S> void sign_modrelu(CMat<S> a, Mat<S> h, const S* bias, S shift) {
  map_entries<S>(a, a, h, [=](S x, S, Index i) {
    const S modulus = x < 0 ? -x : x;
    const S length = modulus + (bias[i] + shift);
    const S alive = length <= 0 ? S(0) : length;  // a NaN stays one
    const S positive = x == 0 ? S(0) : alive;
    return x < 0 ? -positive : positive;
  });
}
template <class S> void sign_modrelu_pullback(CMat<S> h, CMat<S> dh, Mat<S> da, S* dbias) {
  const Index rows = h.rows();
  for (Index j = 0; dbias && j < h.cols(); ++j) {
    const S* y = h.data() + j * h.outerStride();
    const S* dy = dh.data() + j * dh.outerStride();
#pragma GCC ivdep
    for (Index i = 0; i < rows; ++i) {
      const S g = dy[i];
      dbias[i] += y[i] > 0 ? g : y[i] < 0 ? -g : S(0);
    }
  }
  map_entries<S>(dh, h, da, [](S dy, S y, Index) { return y == 0 ? S(0) : dy; });
}

/// Factor f, its derivative with respect to b, and the radial term turn·Re(z̄s dh)·zs, where s = `unit` scales z.
template <class S> struct Radial { S f, df_db, turn, unit; };

template <class S> S select(bool condition, S yes, S no) { return condition ? yes : no; }

struct Exact {
  template <class S> static Radial<S> at(S q, S b, S) {
    const S rho = std::sqrt(q), inverse = S(1) / select(rho > 0, rho, S(1));
    const S alive = select((rho > 0) & (rho + b > 0), S(1), S(0));
    return {alive * (rho + b) * inverse, alive * inverse, alive * -b * inverse, inverse};
  }
};

struct Arj {
  template <class S> static Radial<S> at(S q, S b, S epsilon) {
    const S rho = std::sqrt(q), inverse = S(1) / (rho + epsilon);
    const S alive = select(rho + b > 0, S(1), S(0));
    return {alive * (rho + b) * inverse, alive * inverse, alive * (epsilon - b) * inverse * inverse * rho,
            S(1) / select(rho > 0, rho, S(1))};
  }
};

struct Wis {
  template <class S> static Radial<S> at(S q, S b, S epsilon) {
    const S r = std::sqrt(epsilon + q), inverse = S(1) / (r + epsilon);
    const S alive = select(r + b > 0, S(1), S(0));
    return {alive * (r + b) * inverse, alive * inverse, alive * (epsilon - b) * inverse * inverse / r, S(1)};
  }
};

struct Eu {
  template <class S> static Radial<S> at(S q, S b, S epsilon) {
    const S rho = std::sqrt(q), r = rho + epsilon, inverse = S(1) / r;
    const S alive = select(r + b > 0, S(1), S(0));
    return {alive * (r + b) * inverse, alive * inverse, alive * -b * inverse * inverse * rho,
            S(1) / select(rho > 0, rho, S(1))};
  }
};

struct Squared {
  template <class S> static Radial<S> at(S q, S b, S) {
    const bool normal = q >= std::numeric_limits<S>::min();
    const S inverse = S(1) / select(normal, q, S(1));
    const S alive = select(normal & (q + b > 0), S(1), S(0));
    return {alive * (q + b) * inverse, alive * inverse, alive * S(-2) * b * inverse, std::sqrt(inverse)};
  }
};

template <class S, class Form> void pair_modrelu(CMat<S> a, Mat<S> h, const S* bias, S epsilon) {
  const Index pairs = a.rows() / 2;
  for (Index j = 0; j < a.cols(); ++j) {
    const S *re = a.data() + j * a.outerStride(), *im = re + pairs;
    S *real = h.data() + j * h.outerStride(), *imaginary = real + pairs;
#pragma GCC ivdep
    for (Index i = 0; i < pairs; ++i) {
      const S x = re[i], y = im[i], f = Form::at(x * x + y * y, bias[i], epsilon).f;
      real[i] = f * x;
      imaginary[i] = f * y;
    }
  }
}

template <bool learns, class Form, class S>
void pull_back_column(const S* re, const S* dre, S* dx, const S* bias, S epsilon, S* dbias, Index pairs) {
  const S *im = re + pairs, *dim = dre + pairs;
  S* dy = dx + pairs;
#pragma GCC ivdep
  for (Index i = 0; i < pairs; ++i) {
    const S x = re[i], y = im[i], gx = dre[i], gy = dim[i];
    const Radial<S> radial = Form::at(x * x + y * y, bias[i], epsilon);
    if constexpr (learns) dbias[i] += radial.df_db * (x * gx + y * gy);
    const S ux = x * radial.unit, uy = y * radial.unit;
    const S along = radial.turn * (ux * gx + uy * gy);
    dx[i] = radial.f * gx + along * ux;
    dy[i] = radial.f * gy + along * uy;
  }
}
template <class S, class Form>
void pair_modrelu_pullback(CMat<S> a, CMat<S> dh, Mat<S> da, const S* bias, S epsilon, S* dbias) {
  const auto column = dbias ? &pull_back_column<true, Form, S> : &pull_back_column<false, Form, S>;
  for (Index j = 0; j < a.cols(); ++j)
    column(a.data() + j * a.outerStride(), dh.data() + j * dh.outerStride(), da.data() + j * da.outerStride(), bias,
           epsilon, dbias, a.rows() / 2);
}

template <class S> constexpr ActivationKernels<S> kernels{
    &tanh_pullback<S>,
    &relu<S>,
    &relu_pullback<S>,
    &leaky<S>,
    &leaky_pullback<S>,
    &add_slope_gradient<S>,
    &oplu<S>,
    &oplu_pullback<S>,
    &sign_modrelu<S>,
    &sign_modrelu_pullback<S>,
    {&pair_modrelu<S, Exact>, &pair_modrelu<S, Arj>, &pair_modrelu<S, Wis>, &pair_modrelu<S, Eu>,
     &pair_modrelu<S, Squared>},
    {&pair_modrelu_pullback<S, Exact>, &pair_modrelu_pullback<S, Arj>, &pair_modrelu_pullback<S, Wis>,
     &pair_modrelu_pullback<S, Eu>, &pair_modrelu_pullback<S, Squared>}};

}  // namespace

const ActivationKernels<float>* kernels_float() { return &kernels<float>; }
const ActivationKernels<double>* kernels_double() { return &kernels<double>; }

}  // namespace stiefel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stiefel {

HWY_EXPORT(kernels_float);
HWY_EXPORT(kernels_double);

template <> const ActivationKernels<float>& activation_kernels() { return *HWY_DYNAMIC_DISPATCH(kernels_float)(); }
template <> const ActivationKernels<double>& activation_kernels() { return *HWY_DYNAMIC_DISPATCH(kernels_double)(); }

}  // namespace stiefel
#endif
