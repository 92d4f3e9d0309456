// Memory that grows as needed and never shrinks.
#pragma once

#include <vector>

#include <stiefel/matrix.hpp>

namespace stiefel {

/// Makes `memory` hold at least `size` numbers and returns it. New numbers are zero, the others stay as they are.
template <class S> S* room(std::vector<S>& memory, Index size) {
  if (Index(memory.size()) < size) memory.resize(std::size_t(size));
  return memory.data();
}

}  // namespace stiefel
