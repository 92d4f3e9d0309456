// A network file carries its checksum in its first bytes, so that a copy can be verified anywhere.
//
// HDF5 leaves the first 512 bytes of such a file to its writer ("user block"), and every reader of HDF5 skips them.
// They hold a line of text with the SHA-256 of all that follows. Files of stiefel 0.1 have no such block.
#pragma once

#include <cstdint>
#include <filesystem>

#include <stiefel/export.hpp>

namespace stiefel {

constexpr std::uint64_t sum_block = 512;

/// Writes the checksum into a complete file, which must have been created with a user block of `sum_block` bytes.
STIEFEL_API void write_own_sum(const std::filesystem::path& file);

enum class OwnSum { none, right, wrong };
/// Verifies a file. Returns `none` if it has no such block before its HDF5 signature.
STIEFEL_API OwnSum own_sum(const std::filesystem::path& file);

}  // namespace stiefel
