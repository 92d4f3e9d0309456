// Allocations are counted, and one of them fails.
#include "inject.hpp"

using namespace inject;

bool& OwnMemory::own() {
  __attribute__((tls_model("initial-exec"))) static thread_local bool is_own = false;  // needs no memory itself
  return is_own;
}

extern "C" {

// glibc's own, which need no dlsym and so no memory
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

/// Counts the allocation; true when it is the one that fails.
static bool refused() {
  if (OwnMemory::own()) return false;
  const OwnMemory own;
  State& s = state();
  if (s.mode != Mode::memory || ++s.calls != s.at) return false;
  errno = ENOMEM;
  return true;
}

void* malloc(size_t size) { return refused() ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return refused() ? nullptr : __libc_calloc(count, size); }
void* realloc(void* block, size_t size) { return refused() ? nullptr : __libc_realloc(block, size); }
void* memalign(size_t alignment, size_t size) { return refused() ? nullptr : __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return refused() ? nullptr : __libc_memalign(alignment, size); }
int posix_memalign(void** block, size_t alignment, size_t size) {
  if (refused()) return ENOMEM;
  return (*block = __libc_memalign(alignment, size)) ? 0 : ENOMEM;
}

}  // extern "C"
