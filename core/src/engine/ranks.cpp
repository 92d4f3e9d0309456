#include "engine/ranks.hpp"

#include <cstdlib>
#include <cstring>

#include <stiefel/error.hpp>

namespace stiefel {

Ranks::~Ranks() = default;

void Ranks::gather(std::span<const std::byte> own, std::span<std::byte> all, const std::vector<int>&) {
  std::memcpy(all.data(), own.data(), own.size());
}

void Ranks::abort(int exit_code) { std::_Exit(exit_code); }

#ifndef STIEFEL_MPI
std::unique_ptr<Ranks> mpi_ranks() {
  throw Error(
      "this stiefel was built without MPI; configure it with -DSTIEFEL_MPI=ON, which needs the package "
      "libboost-mpi-dev");
}
#endif

}  // namespace stiefel
