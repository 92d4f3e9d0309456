// A .npy array is refused, or has as many numbers as its shape says, no more than there are bytes.
#include <cstdlib>

#include <stiefel/error.hpp>
#include <stiefel/npy.hpp>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stiefel;
  try {
    const Npy array = parse_npy(std::as_bytes(std::span(data, size)), "f");
    std::size_t count = 1;
    for (const std::size_t extent : array.shape) count *= extent;
    if (count != array.values.size() || count > size) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
