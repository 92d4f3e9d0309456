// Failures of the operating system's file calls as sentences for the user.
#include "base/file_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace stiefel {

bool is_out_of_space(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

Error file_error(const std::string& doing, const std::filesystem::path& path, int error_number) {
  const std::string reason = std::generic_category().message(error_number);
  if (is_out_of_space(error_number))
    return Error(fmt::format("{} {} failed: {}; free some space there", doing, path.string(), reason), Exit::exhausted);
  if (error_number == EIO || error_number == EROFS)
    return Error(fmt::format("{} {} failed: {}; check the disk", doing, path.string(), reason), Exit::exhausted);
  if (error_number == EMFILE || error_number == ENFILE)
    return Error(fmt::format("{} {} failed: {}; raise the limit with ulimit -n", doing, path.string(), reason),
                 Exit::exhausted);
  static constexpr std::array forbidding = {EACCES, EPERM,        ENOENT, ENOTDIR, EISDIR,
                                            EEXIST, ENAMETOOLONG, ELOOP,  EINVAL};
  const bool forbidden = std::find(forbidding.begin(), forbidding.end(), error_number) != forbidding.end();
  return Error(fmt::format("{} {} failed: {}", doing, path.string(), reason), forbidden ? Exit::usage : Exit::damaged);
}

Error out_of_space(const std::filesystem::path& path, std::uintmax_t bytes_needed, const std::string& reason) {
  return Error(
      fmt::format("no room for {}: {} bytes are needed there ({}); free some space. What was stored before is intact",
                  path.string(), bytes_needed, reason),
      Exit::exhausted);
}

void refuse_later_format(const std::filesystem::path& path, double version) {
  if (version > format_version)
    throw Error(fmt::format("{} has format version {}, but this stiefel reads only up to {}; use a newer stiefel",
                            path.string(), version, format_version),
                Exit::damaged);
}

}  // namespace stiefel
