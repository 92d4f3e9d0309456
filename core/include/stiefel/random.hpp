/// Counter-based random numbers: a stream is (seed, name, index); its numbers follow from these alone.
///
/// Philox4x32-10 (Salmon et al., SC 2011) with its own distributions, so that the same seed gives the same numbers with
/// every compiler and library. Streams with different names or indices are independent.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

class STIEFEL_API Rng {
 public:
  explicit Rng(std::uint64_t seed, std::string_view stream = "", std::uint64_t index = 0);

  std::uint32_t bits32();
  std::uint64_t bits64();
  double uniform();                                           ///< [0, 1), 53 bits
  double uniform(double low, double high);                    ///< [low, high), or Error if low > high
  double normal();                                            ///< mean 0, variance 1; Box–Muller
  std::int64_t integer(std::int64_t low, std::int64_t high);  ///< low ≤ k < high, or Error; without bias
  std::vector<std::int64_t> permutation(std::int64_t n);      ///< of 0 … n−1

 private:
  void refill();

  std::uint64_t key_, index_, position_ = 0;  // numbers of 32 bits consumed
  std::uint32_t block_[4];                    // the four numbers that position_ lies in
};

}  // namespace stiefel
