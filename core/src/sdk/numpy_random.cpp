// NumPy's legacy RandomState on the standard library's Mersenne Twister, which an integer seeds in the same way.
#include <stiefel/numpy_random.hpp>

#include <bit>
#include <numeric>

#include <stiefel/error.hpp>

namespace stiefel {

NumpyRandomState::NumpyRandomState(std::uint32_t seed) : generator_(seed) {}

// Uniform on 0 … largest ≥ 1: draws of 32 bits, cut to the bits of `largest`, until one fits.
std::uint32_t NumpyRandomState::masked(std::uint32_t largest) {
  const std::uint32_t mask = ~std::uint32_t(0) >> std::countl_zero(largest);
  std::uint32_t value = 0;
  do value = static_cast<std::uint32_t>(generator_()) & mask;
  while (value > largest);
  return value;
}

std::vector<std::int64_t> NumpyRandomState::permutation(std::int64_t n) {
  STIEFEL_ASSERT(n >= 0 && n <= std::int64_t(1) << 32);
  std::vector<std::int64_t> p(static_cast<std::size_t>(n));
  std::iota(p.begin(), p.end(), 0);
  for (std::int64_t i = n - 1; i > 0; --i) std::swap(p[i], p[masked(static_cast<std::uint32_t>(i))]);
  return p;
}

}  // namespace stiefel
