/// What the files that call HDF5's C library share: checked returns, types and data spaces.
#pragma once

#include <hdf5.h>

#include <string>

#include "record/hdf5.hpp"

namespace stiefel::hdf5 {

constexpr std::uint64_t most_elements_read = std::uint64_t(1) << 30;  // a damaged shape must not ask for all memory

/// Throws Error with the innermost reason of HDF5's error stack, or that of the operating system if there is one. It
/// has Exit::exhausted if memory or the disk is full, else Exit::damaged.
[[noreturn]] void fail(const char* doing, const std::string& where);

template <class T> T ok(T result, const char* doing, const std::string& where) {
  if (result < 0) fail(doing, where);
  return result;
}

/// Must be called before the first call of every thread: it silences HDF5's error stack, which is per thread, and turns
/// off its exit handler, which may crash after a full disk.
void prepare_thread();

Handle property_list(hid_t kind);
Handle text_type();
Handle disk_type(Type type);
/// The type in memory of elements that have `type` on the disk: complex for complex, else `number` (f8, f4 or i8).
Handle memory_type(Type type, Type number);
Type type_of(hid_t type, const std::string& where);
Handle space_of(const Shape& shape, bool extendible, const std::string& where);

}  // namespace stiefel::hdf5
