// Reads whole files of a bounded size.
#include "tasks/formats/named_file.hpp"

#include <fmt/format.h>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <stiefel/error.hpp>

namespace stiefel {

void NamedFile::refuse(std::string_view what) const {
  throw Error(mend.empty() ? fmt::format("{}: {}.", path, what) : fmt::format("{}: {}. {}", path, what, mend),
              Exit::data);
}

std::string bytes_of(const NamedFile& file, std::uint64_t largest) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file.path, error)) file.refuse(error ? error.message() : "not a file");
  const std::uint64_t size = std::filesystem::file_size(file.path, error);
  std::ifstream stream(file.path, std::ios::binary);
  if (error || !stream) file.refuse(fmt::format("cannot be opened ({})", std::generic_category().message(errno)));
  if (size > largest) file.refuse(fmt::format("has {} bytes, but such a file can have at most {}", size, largest));
  std::string bytes(size, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (static_cast<std::uint64_t>(stream.gcount()) != size)
    file.refuse(fmt::format("gave {} of its {} bytes", stream.gcount(), size));
  return bytes;
}

}  // namespace stiefel
