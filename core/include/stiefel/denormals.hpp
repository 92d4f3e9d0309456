/// Subnormal numbers count as zero while a DenormalsOff exists: they are up to a hundred times slower, and vanishing
/// gradients produce many of them.
#pragma once

#include <cstdint>

#include <stiefel/export.hpp>

namespace stiefel {

/// For the calling thread only: results are flushed to zero and arguments read as zero. Destroy it on the same thread,
/// in reverse order. x86-64 and AArch64; elsewhere it does nothing.
class STIEFEL_API DenormalsOff {
 public:
  DenormalsOff();
  ~DenormalsOff();
  DenormalsOff(const DenormalsOff&) = delete;
  DenormalsOff& operator=(const DenormalsOff&) = delete;

 private:
  std::uint64_t before_;  // the control register's bits
};

}  // namespace stiefel
