#include "tasks/formats/inflate.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <algorithm>
#include <memory>

namespace stiefel {
namespace {

constexpr std::size_t first_piece = std::size_t(1) << 16, largest_text = std::size_t(1) << 32;

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

std::string text_of(const NamedFile& file) {
  std::string bytes = bytes_of(file);
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> stream(gzopen(file.path.c_str(), "rb"), &gzclose);
  if (!stream) file.refuse("cannot be opened");
  bytes.clear();
  for (int got = 1; got > 0;) {
    const std::size_t before = bytes.size();
    if (before > largest_text) file.refuse(fmt::format("decompresses to more than {} bytes", largest_text));
    bytes.resize(before + std::max(first_piece, before / 2 % (std::size_t(1) << 30)));
    got = gzread(stream.get(), bytes.data() + before, unsigned(bytes.size() - before));
    bytes.resize(before + std::size_t(std::max(got, 0)));
  }
  int code = Z_OK;
  const char* message = gzerror(stream.get(), &code);
  if (code != Z_OK && code != Z_STREAM_END) file.refuse(fmt::format("cannot be decompressed ({})", message));
  return bytes;
}

}  // namespace stiefel
