#include "engine/ranks.hpp"

#include <cstdlib>
#include <cstring>
#include <numeric>

#include <stiefel/error.hpp>

namespace stiefel {

Ranks::~Ranks() = default;

void Ranks::gather(std::span<const std::byte> own, std::span<std::byte> all, const std::vector<int>&) {
  std::memcpy(all.data(), own.data(), own.size());
}

std::vector<std::string> Ranks::texts(const std::string& own) {
  const std::vector<int> of_sizes(std::size_t(count()), int(sizeof(int)));
  std::vector<int> sizes(of_sizes.size());
  const int size = int(own.size());
  gather(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)), of_sizes);
  std::string all(std::size_t(std::accumulate(sizes.begin(), sizes.end(), 0)), '\0');
  gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)), sizes);
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (const int length : sizes) {
    texts.push_back(all.substr(begin, std::size_t(length)));
    begin += std::size_t(length);
  }
  return texts;
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
