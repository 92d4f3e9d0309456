// Loops that only the machine limits, once per SIMD target.
#pragma once

#include <stiefel/matrix.hpp>

namespace stiefel {

struct LimitKernel {
  bool fused;           // the target multiplies and adds in one instruction
  Index multiply_adds;  // of float in a repetition of `in_registers`
  /// Multiply-adds of numbers that never leave the registers; returns their sum.
  float (*in_registers)(Index repetitions);
  /// The sum of `size` numbers, and c = a + b/2; `size` is a multiple of 128.
  float (*read)(const float* a, Index size);
  void (*triad)(const float* a, const float* b, float* c, Index size);
};

/// The loops of the target chosen at run time.
const LimitKernel& limit_kernel();

}  // namespace stiefel
