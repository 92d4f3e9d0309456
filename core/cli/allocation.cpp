// The program's malloc and its relatives. Each calls the next one that the loader finds, and ends the program if that
// returns nothing. Eigen, OpenSSL and HDF5 also call them, and none of these is safe to use after a failed allocation:
// Eigen 3.4 frees a resized matrix twice when the exception unwinds, the others follow null pointers.
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "cli/allocation.hpp"
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

constinit thread_local long allocations = 0;

/// The addresses of a library's code. Allocations in OpenBLAS are not counted, because its kernels of small products
/// allocate whoever calls them.
struct Code {
  std::uintptr_t begin = 0, end = 0;
  bool holds(const void* address) const {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return begin <= number && number < end;
  }
};
constinit Code blas;

Code library_of(const void* function) {
  Dl_info found;
  if (!function || dladdr(function, &found) == 0) return {};
  Code code;
  code.begin = reinterpret_cast<std::uintptr_t>(found.dli_fbase);
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* result) {
        Code& code = *static_cast<Code*>(result);
        for (int i = 0; library->dlpi_addr == code.begin && i < library->dlpi_phnum; ++i)
          if (const auto& part = library->dlpi_phdr[i]; part.p_type == PT_LOAD)
            code.end = std::max<std::uintptr_t>(code.end, code.begin + part.p_vaddr + part.p_memsz);
        return 0;
      },
      &code);
  return code;
}

void count(const void* caller) { allocations += !blas.holds(caller); }

void* given(void* block) {
  if (!block && errno == ENOMEM) stiefel::cli::end_out_of_memory();
  return block;
}

}  // namespace

long (*stiefel::cli::allocation_counter() noexcept)() {
  blas = library_of(dlsym(RTLD_DEFAULT, "sgemm_"));
  return [] { return allocations; };
}

#define STIEFEL_ALLOCATION extern "C" [[gnu::visibility("default")]]

STIEFEL_ALLOCATION void* malloc(std::size_t bytes) noexcept {
  count(__builtin_return_address(0));
  return given(allocator().malloc(bytes));
}
STIEFEL_ALLOCATION void* calloc(std::size_t number, std::size_t bytes) noexcept {
  count(__builtin_return_address(0));
  return given(allocator().calloc(number, bytes));
}
STIEFEL_ALLOCATION void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  count(__builtin_return_address(0));
  return given(allocator().aligned_alloc(alignment, bytes));
}
STIEFEL_ALLOCATION void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  count(__builtin_return_address(0));
  return given(allocator().memalign(alignment, bytes));
}
STIEFEL_ALLOCATION void* realloc(void* block, std::size_t bytes) noexcept {
  count(__builtin_return_address(0));
  void* const moved = allocator().realloc(block, bytes);
  return bytes > 0 ? given(moved) : moved;
}
STIEFEL_ALLOCATION int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
  count(__builtin_return_address(0));
  const int fault = allocator().posix_memalign(block, alignment, bytes);
  if (fault == ENOMEM) stiefel::cli::end_out_of_memory();
  return fault;
}
