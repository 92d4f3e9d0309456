/// SHA-256 of bytes and of files, as 64 lower-case hexadecimal digits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <stiefel/export.hpp>

namespace stiefel {

STIEFEL_API std::string sha256(std::string_view text);
/// Of all but the first `skipped` bytes, read in pieces; Error naming the file when it cannot be read.
STIEFEL_API std::string sha256_of_file(const std::filesystem::path& path, std::uint64_t skipped = 0);

}  // namespace stiefel
