/// IDX files for tests, plain and compressed, in a folder of their own.
#pragma once

#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace idx_files {

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stiefel-idx-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

inline std::string big_endian(std::uint32_t x) { return {char(x >> 24), char(x >> 16), char(x >> 8), char(x)}; }

/// Header of an array of bytes.
inline std::string header(const std::vector<std::uint32_t>& sizes) {
  std::string bytes{'\0', '\0', '\x08', char(sizes.size())};
  for (const std::uint32_t size : sizes) bytes += big_endian(size);
  return bytes;
}

inline std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

inline void write_gzip(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  const gzFile stream = gzopen(file.c_str(), "wb9");
  gzwrite(stream, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(stream);
}

}  // namespace idx_files
