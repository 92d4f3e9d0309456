#include "tasks/formats/inflate.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stiefel {
namespace {

constexpr std::size_t first_piece = std::size_t(1) << 16, largest_piece = std::size_t(1) << 30,
                      largest_text = std::size_t(1) << 32;

}  // namespace

std::string inflate_all(std::string_view compressed, int window, std::size_t most, const NamedFile& file) {
  z_stream stream{};
  if (inflateInit2(&stream, window) != Z_OK) file.refuse("cannot be decompressed: cannot initialize zlib");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&stream, &inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string bytes;
  int code = Z_OK;
  while (code == Z_OK) {
    const std::size_t before = bytes.size();
    if (before >= most) file.refuse(fmt::format("decompresses to more than the limit of {} bytes", most));
    bytes.resize(std::min(most, before + std::max(first_piece, before)));
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + before);
    stream.avail_out = static_cast<uInt>(bytes.size() - before);
    code = inflate(&stream, Z_NO_FLUSH);
    bytes.resize(bytes.size() - stream.avail_out);
  }
  if (code != Z_STREAM_END)
    file.refuse(
        fmt::format("cannot be decompressed ({})", stream.msg ? stream.msg : "the compressed data ends too early"));
  if (stream.avail_in > 0) file.refuse(fmt::format("has {} bytes behind the end of compressed data", stream.avail_in));
  return bytes;
}

GzipFile::GzipFile(NamedFile name) : name_(std::move(name)), file_(gzopen(name_.path.c_str(), "rb"), &gzclose) {
  if (!file_) name_.refuse(fmt::format("cannot be opened ({})", std::strerror(errno)));
}

std::size_t GzipFile::read(void* bytes, std::size_t count) {
  const int got = gzread(file_.get(), bytes, static_cast<unsigned>(count));
  int code = Z_OK;
  const char* message = gzerror(file_.get(), &code);
  if (got < 0 || (code != Z_OK && code != Z_STREAM_END))
    name_.refuse(fmt::format("cannot be read or decompressed ({})", code == Z_ERRNO ? std::strerror(errno) : message));
  return static_cast<std::size_t>(got);
}

bool GzipFile::append(std::string& bytes, std::size_t count) {
  const std::size_t before = bytes.size();
  bytes.resize(before + count);
  bytes.resize(before + read(bytes.data() + before, count));
  return bytes.size() > before;
}

std::string text_of(const NamedFile& file) {
  std::string bytes = bytes_of(file);
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  bytes.clear();
  GzipFile stream(file);
  while (stream.append(bytes, std::clamp(bytes.size() / 2, first_piece, largest_piece)))
    if (bytes.size() > largest_text) file.refuse(fmt::format("decompresses to more than {} bytes", largest_text));
  return bytes;
}

}  // namespace stiefel
