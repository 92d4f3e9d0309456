/// Failures of the operating system's file calls as sentences for the user.
#pragma once

#include <filesystem>
#include <string>

#include <stiefel/error.hpp>

namespace stiefel {

/// True for the error numbers that mean "no room": disk full, quota used up, file size limit.
STIEFEL_API bool is_out_of_space(int error_number);

/// "<doing> <path> failed: <reason>"; Exit::exhausted when there is no room, Exit::usage when the path may not be used,
/// else Exit::damaged.
STIEFEL_API Error file_error(const std::string& doing, const std::filesystem::path& path, int error_number);

/// Makes what is missing of the folder and of those above it; throws file_error.
STIEFEL_API void make_folder(const std::filesystem::path& path);

/// The same sentence for a beginning such as "writing x failed: ".
STIEFEL_API Error system_error(const std::string& beginning, int error_number);

/// Like file_error for lack of space, naming the number of bytes needed.
STIEFEL_API Error out_of_space(const std::filesystem::path& path, std::uintmax_t bytes_needed,
                               const std::string& reason);

/// Format version of results.h5, of checkpoints and of their index: the one written, and the latest that can be read.
constexpr int format_version = 2;

/// Error (Exit::damaged) when the file has a later format than that, or one that never was.
STIEFEL_API void refuse_other_format(const std::filesystem::path& path, double version);

}  // namespace stiefel
