// An IDX file, plain or compressed, is refused, or has as many values as its sizes say.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <stiefel/error.hpp>
#include "tasks/formats/idx.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stiefel;
  static const int file = memfd_create("idx", 0);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != ssize_t(size)) std::abort();
  try {
    const Idx idx = read_idx("/proc/self/fd/" + std::to_string(file), 1 + size % 3, "");
    std::int64_t count = 1;
    for (const std::int64_t extent : idx.sizes) count *= extent;
    if (count != std::int64_t(idx.values.size()) || idx.sizes.size() != 1 + size % 3) std::abort();
  } catch (const Error& error) {
    if (error.code() != Exit::data) std::abort();
  }
  return 0;
}
