/// The type of sizes and indices: Eigen's, here without Eigen.
#pragma once

#include <cstddef>

namespace stiefel {

using Index = std::ptrdiff_t;

}  // namespace stiefel
