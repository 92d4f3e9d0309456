// Uses system calls: a stream throws its own exception, without the path, when reading fails.
#include "base/file_content.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/descriptor.hpp"
#include "base/file_error.hpp"

namespace stiefel {

std::optional<std::string> content_if_there(const std::filesystem::path& path, std::uintmax_t begin) {
  for (int attempt = 1;; ++attempt) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (*file < 0 && errno == ENOENT) return std::nullopt;
    if (*file < 0) throw file_error("opening", path, errno);
    if (begin > 0 && ::lseek(*file, off_t(begin), SEEK_SET) < 0) throw file_error("reading", path, errno);
    std::string text;
    std::array<char, 1 << 14> part;
    ssize_t count;
    while ((count = ::read(*file, part.data(), part.size())) > 0 || (count < 0 && errno == EINTR))
      if (count > 0) text.append(part.data(), std::size_t(count));
    if (count == 0) return text;
    const bool replaced = errno == ESTALE;  // or removed, by another host of a network file system
    if (!replaced || attempt == 3) throw file_error("reading", path, errno);
  }
}

std::string file_content(const std::filesystem::path& path, std::uintmax_t begin) {
  if (auto text = content_if_there(path, begin)) return *std::move(text);
  throw file_error("opening", path, ENOENT);
}

std::string file_tail(const std::filesystem::path& path, std::uintmax_t begin) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const off_t end = ::lseek(*file, 0, SEEK_END);
  std::string text(std::size_t(std::clamp<off_t>(end - off_t(begin), 0, 1 << 14)), '\0');
  const ssize_t count = ::pread(*file, text.data(), text.size(), end - off_t(text.size()));
  text.resize(std::size_t(std::max<ssize_t>(count, 0)));
  return text;
}

}  // namespace stiefel
