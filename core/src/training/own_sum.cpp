#include "training/own_sum.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>

#include "base/file_error.hpp"
#include "base/sha256.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view hdf5_signature = "\x89HDF\r\n\x1a\n";

std::string block_of(const fs::path& file) {
  std::string block =
      fmt::format("stiefel network; SHA-256 of what follows byte {}: {}\n", sum_block, sha256_of_file(file, sum_block));
  block.resize(sum_block);
  return block;
}

}  // namespace

void write_own_sum(const fs::path& file) {
  const std::string block = block_of(file);
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  if (!stream.write(block.data(), std::streamsize(block.size())).flush()) throw file_error("writing", file, errno);
}

OwnSum own_sum(const fs::path& file) {
  std::string start(sum_block + hdf5_signature.size(), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(start.data(), std::streamsize(start.size()));
  if (!std::string_view(start).substr(sum_block).starts_with(hdf5_signature)) return OwnSum::none;
  start.resize(sum_block);
  return start == block_of(file) ? OwnSum::right : OwnSum::wrong;
}

}  // namespace stiefel
