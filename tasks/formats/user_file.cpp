// Finds and reads a file of the user's.
#include "user_file.hpp"

#include <fmt/format.h>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <stiefel/error.hpp>

namespace stiefel {
namespace fs = std::filesystem;

std::string find_user_file(const std::string& task, const std::string& name, const std::string& directory) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored)) return name;
  const bool elsewhere = !directory.empty() && !fs::path(name).is_absolute();
  if (elsewhere && fs::is_regular_file(fs::path(directory) / name, ignored)) return (fs::path(directory) / name).string();
  throw Error(
      fmt::format("{}: there is no file {}{}. Name it from the current folder, from the data directory (--data DIR) or from the root.",
                  task, name, elsewhere ? fmt::format(", and none in {}", directory) : ""),
      Exit::data);
}

std::string read_bytes(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) throw Error(fmt::format("{}: there is no such file", path), Exit::data);
  std::ifstream stream(path, std::ios::binary);
  std::string bytes(fs::file_size(path, ignored), '\0');
  if (stream) stream.read(bytes.data(), std::streamsize(bytes.size()));
  if (!stream) throw Error(fmt::format("{}: cannot be read ({})", path, std::generic_category().message(errno)), Exit::data);
  return bytes;
}

}  // namespace stiefel
