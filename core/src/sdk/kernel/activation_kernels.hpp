// The loops of the activations, compiled for every SIMD target.
//
// a is the input, h the output, dh and da their gradients, all rows × columns; dh and da may be the same memory, a and
// h too where no pullback takes a.
#pragma once

#include <array>
#include <span>

#include <stiefel/matrix.hpp>

namespace stiefel {

/// Forms of modReLU for complex numbers, as places in the arrays below.
enum class PairForm { exact, arj, wis, eu, squared };

template <class S> struct ActivationKernels {
  using Pair = void (*)(CMat<S> a, Mat<S> h, const S* bias, S epsilon);
  using PairPullback = void (*)(CMat<S> a, CMat<S> dh, Mat<S> da, const S* bias, S epsilon, S* dbias);

  void (*tanh_pullback)(CMat<S> h, CMat<S> dh, Mat<S> da);
  void (*relu)(CMat<S> a, Mat<S> h);
  void (*relu_pullback)(CMat<S> h, CMat<S> dh, Mat<S> da);
  /// One slope, or one for each row.
  void (*leaky)(CMat<S> a, Mat<S> h, std::span<const S> slopes);
  /// `x` has the signs of a.
  void (*leaky_pullback)(CMat<S> x, CMat<S> dh, Mat<S> da, std::span<const S> slopes);
  void (*add_slope_gradient)(CMat<S> a, CMat<S> dh, std::span<S> dslopes);
  /// Pair k is made of the rows k·step and k·step + distance.
  void (*oplu)(CMat<S> a, Mat<S> h, Index step, Index distance);
  void (*oplu_pullback)(CMat<S> a, CMat<S> dh, Mat<S> da, Index step, Index distance);
  /// `bias`: one for each row; pullbacks add to `dbias` unless it is null.
  void (*sign_modrelu)(CMat<S> a, Mat<S> h, const S* bias, S shift);
  void (*sign_modrelu_pullback)(CMat<S> h, CMat<S> dh, Mat<S> da, S* dbias);
  /// By PairForm; `bias`: one for each pair of rows.
  std::array<Pair, 5> pair_modrelu;
  std::array<PairPullback, 5> pair_modrelu_pullback;
};

/// Those for the chosen SIMD target.
template <class S> const ActivationKernels<S>& activation_kernels();

}  // namespace stiefel
