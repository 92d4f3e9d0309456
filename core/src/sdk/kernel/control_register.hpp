// The register that controls floating-point arithmetic of the calling thread: MXCSR (x86-64) or FPCR (AArch64).
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stiefel {

#if defined(__x86_64__)
constexpr std::uint64_t zero_bits = 0x8040;  // flush to zero, denormals are zero
inline std::uint64_t control() { return _mm_getcsr(); }
inline void set_control(std::uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }
#elif defined(__aarch64__)
constexpr std::uint64_t zero_bits = std::uint64_t(1) << 24;  // FZ: arguments and results
inline std::uint64_t control() {
  std::uint64_t bits;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
inline void set_control(std::uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#else
constexpr std::uint64_t zero_bits = 0;
inline std::uint64_t control() { return 0; }
inline void set_control(std::uint64_t) {}
#endif

/// Only these bits change: exception flags raised meanwhile and other modes stay.
inline void set_zero_bits(std::uint64_t bits) { set_control((control() & ~zero_bits) | (bits & zero_bits)); }

}  // namespace stiefel
