/// Random numbers as NumPy's legacy generator draws them.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

/// The permutations of NumPy's legacy RandomState(seed): they define the published pixel orders of permuted MNIST.
class STIEFEL_API NumpyRandomState {
 public:
  explicit NumpyRandomState(std::uint32_t seed);
  std::vector<std::int64_t> permutation(std::int64_t n);

 private:
  std::uint32_t masked(std::uint32_t largest);
  std::mt19937 generator_;
};

}  // namespace stiefel
