// Memory that grows and is kept.
#pragma once

#include <vector>

#include <stiefel/matrix.hpp>

namespace stiefel {

/// At least `size` numbers; new ones are zero, old ones are whatever they were.
template <class S> S* room(std::vector<S>& memory, Index size) {
  if (Index(memory.size()) < size) memory.resize(std::size_t(size));
  return memory.data();
}

}  // namespace stiefel
