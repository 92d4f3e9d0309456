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

Error system_error(const std::string& beginning, int error_number) {
  const std::string reason = beginning + std::generic_category().message(error_number);
  if (error_number == EFBIG)
    return Error(reason + "; raise the limit on the size of files with ulimit -f", Exit::exhausted);
  if (is_out_of_space(error_number)) return Error(reason + "; free some space there", Exit::exhausted);
  if (error_number == EIO || error_number == EROFS) return Error(reason + "; check the disk", Exit::exhausted);
  if (error_number == ENOMEM) return Error(reason + "; free some memory", Exit::exhausted);
  if (error_number == EMFILE || error_number == ENFILE)
    return Error(reason + "; raise the limit with ulimit -n", Exit::exhausted);
  static constexpr std::array forbidding = {EACCES, EPERM,        ENOENT, ENOTDIR, EISDIR,
                                            EEXIST, ENAMETOOLONG, ELOOP,  EINVAL};
  const bool forbidden = std::find(forbidding.begin(), forbidding.end(), error_number) != forbidding.end();
  return Error(reason, forbidden ? Exit::usage : Exit::damaged);
}

Error file_error(const std::string& doing, const std::filesystem::path& path, int error_number) {
  return system_error(fmt::format("{} {} failed: ", doing, path.string()), error_number);
}

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw file_error("creating the folder", path, error.value());
}

Error out_of_space(const std::filesystem::path& path, std::uintmax_t bytes_needed, const std::string& reason) {
  return Error(
      fmt::format("no room for {}: {} bytes are needed there ({}); free some space. What was stored before is intact",
                  path.string(), bytes_needed, reason),
      Exit::exhausted);
}

void refuse_other_format(const std::filesystem::path& path, double version) {
  if (!(version >= 1))
    throw Error(fmt::format("{} is damaged: it has format version {}, and the first one was 1", path.string(), version),
                Exit::damaged);
  if (version > format_version)
    throw Error(fmt::format("{} has format version {}, but this stiefel reads only up to {}; use a newer stiefel",
                            path.string(), version, format_version),
                Exit::damaged);
}

}  // namespace stiefel
