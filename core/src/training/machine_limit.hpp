// What the machine can do at most: multiply-adds in registers, and bytes from and to memory.
#pragma once

#include <string>
#include <vector>

#include <stiefel/export.hpp>

#include "training/throughput.hpp"

namespace stiefel {

struct MachineLimit {
  std::string what;  // "multiply-add" in floating point operations of float; "read" or "triad" in bytes
  std::string simd;  // instruction set
  Rate rate;
};

/// Measures multiply-adds with every SIMD target of this CPU that fuses them, best first; then two loops over arrays
/// beyond all caches: their sum, and c = a + b/2, which counts 12 bytes per number. All take about `seconds`.
STIEFEL_API std::vector<MachineLimit> measure_limits(int threads, double seconds);

}  // namespace stiefel
