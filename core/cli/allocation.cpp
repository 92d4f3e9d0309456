// The program's malloc and its relatives: the next ones that the loader finds, and the end of the program where those
// give nothing. Eigen, OpenSSL and HDF5 also call them, and none of these is safe to use after a failed allocation:
// Eigen 3.4 frees a resized matrix twice when the exception unwinds, the others follow null pointers.
#include <dlfcn.h>
#include <malloc.h>

#include <cerrno>
#include <cstddef>

#include "cli/sudden_end.hpp"

namespace {

template <class F> F next(const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

struct Next {
  void* (*malloc)(std::size_t) = next<decltype(malloc)>("malloc");
  void* (*calloc)(std::size_t, std::size_t) = next<decltype(calloc)>("calloc");
  void* (*realloc)(void*, std::size_t) = next<decltype(realloc)>("realloc");
  void* (*aligned_alloc)(std::size_t, std::size_t) = next<decltype(aligned_alloc)>("aligned_alloc");
  void* (*memalign)(std::size_t, std::size_t) = next<decltype(memalign)>("memalign");
  int (*posix_memalign)(void**, std::size_t, std::size_t) = next<decltype(posix_memalign)>("posix_memalign");
};

const Next& allocator() {
  static const Next found;
  return found;
}

void* given(void* block) {
  if (!block && errno == ENOMEM) stiefel::cli::end_out_of_memory();
  return block;
}

}  // namespace

#define STIEFEL_ALLOCATION extern "C" [[gnu::visibility("default")]]

STIEFEL_ALLOCATION void* malloc(std::size_t bytes) noexcept { return given(allocator().malloc(bytes)); }
STIEFEL_ALLOCATION void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return given(allocator().calloc(count, bytes));
}
STIEFEL_ALLOCATION void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return given(allocator().aligned_alloc(alignment, bytes));
}
STIEFEL_ALLOCATION void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return given(allocator().memalign(alignment, bytes));
}
STIEFEL_ALLOCATION void* realloc(void* block, std::size_t bytes) noexcept {
  void* const moved = allocator().realloc(block, bytes);
  return bytes > 0 ? given(moved) : moved;
}
STIEFEL_ALLOCATION int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
  const int fault = allocator().posix_memalign(block, alignment, bytes);
  if (fault == ENOMEM) stiefel::cli::end_out_of_memory();
  return fault;
}
