/// The type of sizes and indices: the same as Eigen's, without including Eigen.
#pragma once

#include <cstddef>

namespace stiefel {

using Index = std::ptrdiff_t;

}  // namespace stiefel
