/// Reads files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <stiefel/export.hpp>

namespace stiefel {

/// All bytes of a file after the first `begin`; file_error() when it cannot be read.
STIEFEL_API std::string file_content(const std::filesystem::path& path, std::uintmax_t begin = 0);
/// The same; nothing when there is no such file.
STIEFEL_API std::optional<std::string> content_if_there(const std::filesystem::path& path, std::uintmax_t begin = 0);
/// The last 16 KiB of a file, or what follows its first `begin` bytes if that is less; empty when it cannot be read.
STIEFEL_API std::string file_tail(const std::filesystem::path& path, std::uintmax_t begin = 0);

}  // namespace stiefel
