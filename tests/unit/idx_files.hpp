/// IDX files for tests, plain and compressed, in a temporary folder.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <vector>

#include "scratch.hpp"

namespace idx_files {

using scratch::Folder, scratch::read, scratch::write;

inline std::string big_endian(std::uint32_t x) { return {char(x >> 24), char(x >> 16), char(x >> 8), char(x)}; }

/// Header of an array of bytes.
inline std::string header(const std::vector<std::uint32_t>& sizes) {
  std::string bytes{'\0', '\0', '\x08', char(sizes.size())};
  for (const std::uint32_t size : sizes) bytes += big_endian(size);
  return bytes;
}

inline void write_gzip(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  const gzFile stream = gzopen(file.c_str(), "wb9");
  gzwrite(stream, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(stream);
}

}  // namespace idx_files
