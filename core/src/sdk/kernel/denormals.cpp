// DenormalsOff: flush-to-zero bits of MXCSR (x86-64) or FPCR (AArch64).
#include <stiefel/denormals.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stiefel {

namespace {
#if defined(__x86_64__)
constexpr std::uint64_t zero_bits = 0x8040;  // flush to zero, denormals are zero
std::uint64_t control() { return _mm_getcsr(); }
void set_control(std::uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }
#elif defined(__aarch64__)
constexpr std::uint64_t zero_bits = std::uint64_t(1) << 24;  // FZ: arguments and results
std::uint64_t control() {
  std::uint64_t bits;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void set_control(std::uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#else
constexpr std::uint64_t zero_bits = 0;
std::uint64_t control() { return 0; }
void set_control(std::uint64_t) {}
#endif
}  // namespace

DenormalsOff::DenormalsOff() : before_(control()) { set_control(before_ | zero_bits); }

// Only the two bits go back: exception flags raised meanwhile and other modes stay.
DenormalsOff::~DenormalsOff() { set_control((control() & ~zero_bits) | (before_ & zero_bits)); }

}  // namespace stiefel
