/// Elementary functions of many numbers at once, on the SIMD target that product_target() names.
///
/// y may be x itself; otherwise the two do not overlap, and both have the same length. The result for a number depends
/// on that number and the SIMD target alone, never on its position or on the length. These functions are thread-safe.
/// NaN gives NaN; ±∞ give the limits.
///
/// Largest errors in units in the last place, of float and double alike and including subnormal results:
///   vector_exp 2, vector_sigmoid 3, vector_tanh 4.
/// Under DenormalsOff subnormal arguments count as zero and subnormal results are zero.
#pragma once

#include <span>

#include <stiefel/export.hpp>

/// Put this before a function that loops over numbers and is not virtual: GCC then compiles it for AVX-512 and AVX2 as
/// well, and the CPU that loads the plugin decides. The bits are the same, since stiefel_add_plugin forbids fusing
/// products with sums (-ffp-contract=off). Other compilers and CPUs: no effect.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define STIEFEL_SIMD_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define STIEFEL_SIMD_CLONES
#endif

namespace stiefel {

template <class S> STIEFEL_API void vector_exp(std::span<const S> x, std::span<S> y);      ///< eˣ
template <class S> STIEFEL_API void vector_sigmoid(std::span<const S> x, std::span<S> y);  ///< 1/(1 + e⁻ˣ)
template <class S>
STIEFEL_API void vector_tanh(std::span<const S> x, std::span<S> y);  ///< odd: tanh(−x) is −tanh x to the bit

}  // namespace stiefel
