// The checksum that a file of a network carries in its own first bytes, so that a copy can be trusted anywhere.
//
// HDF5 leaves the first 512 bytes of such a file to its writer ("user block"); they hold a line of text with the SHA-256 of all
// that follows. Every reader of HDF5 skips them. Files of stiefel 0.1 have no such block.
#pragma once

#include <cstdint>
#include <filesystem>

#include <stiefel/export.hpp>

namespace stiefel {

constexpr std::uint64_t sum_block = 512;

/// Fills the first bytes of a complete file that was created with a user block of `sum_block` bytes.
STIEFEL_API void write_own_sum(const std::filesystem::path& file);

enum class OwnSum { none, right, wrong };
/// Whether a file is what was written; `none` when it has no such block before its HDF5 signature.
STIEFEL_API OwnSum own_sum(const std::filesystem::path& file);

}  // namespace stiefel
