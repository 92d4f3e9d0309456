#include "tasks/formats/idx.hpp"

#include <fmt/ranges.h>
#include <algorithm>

#include "tasks/formats/inflate.hpp"

namespace stiefel {
namespace {

constexpr std::uint64_t largest = std::uint64_t(1) << 30;
constexpr std::size_t piece = std::size_t(1) << 20;

std::vector<std::int64_t> read_header(GzipFile& file, std::size_t dimensions) {
  std::vector<std::uint8_t> header(4 + 4 * dimensions);
  const std::size_t got = file.read(header.data(), header.size());
  if (got == 0)
    file.name().refuse(
        fmt::format("an empty file, expected an IDX file, which begins with 00 00 08 {:02x}", dimensions));
  if (got < 4 || header[0] != 0 || header[1] != 0)
    file.name().refuse(fmt::format("not an IDX file: it begins with {:02x}, expected 00 00 08 {:02x}",
                                   fmt::join(header.begin(), header.begin() + std::min<std::size_t>(got, 4), " "),
                                   dimensions));
  if (header[2] != 8)
    file.name().refuse(fmt::format("an IDX file of values of type {:02x}, expected 08, unsigned bytes", header[2]));
  if (header[3] != dimensions)
    file.name().refuse(fmt::format("an IDX array of {} dimensions, expected {}", header[3], dimensions));
  if (got < header.size())
    file.name().refuse(fmt::format("ends inside the header, after {} bytes of {}", got, header.size()));
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 4; i < header.size(); i += 4)
    sizes.push_back(std::int64_t(header[i]) << 24 | std::int64_t(header[i + 1]) << 16 |
                    std::int64_t(header[i + 2]) << 8 | header[i + 3]);
  return sizes;
}

std::uint64_t checked_total(const NamedFile& file, const std::vector<std::int64_t>& sizes) {
  std::uint64_t total = 1;
  for (const std::int64_t size : sizes) {
    if (size == 0) file.refuse(fmt::format("an empty array of {} values", fmt::join(sizes, " × ")));
    if (static_cast<std::uint64_t>(size) > largest / total)
      file.refuse(fmt::format("the header names {} values, which is impossible", fmt::join(sizes, " × ")));
    total *= static_cast<std::uint64_t>(size);
  }
  return total;
}

}  // namespace

Idx read_idx(const std::string& path, std::size_t dimensions, const std::string& mend) {
  GzipFile file({path, mend});
  Idx idx{read_header(file, dimensions), {}};
  const std::uint64_t total = checked_total(file.name(), idx.sizes);
  while (idx.values.size() < total) {
    const std::size_t before = idx.values.size(), wanted = std::min<std::size_t>(piece, total - before);
    idx.values.resize(before + wanted);
    const std::size_t got = file.read(idx.values.data() + before, wanted);
    if (got < wanted)
      file.name().refuse(fmt::format("ends after {} of the {} values that its header names", before + got, total));
  }
  std::uint8_t beyond = 0;
  if (file.read(&beyond, 1) != 0)
    file.name().refuse(fmt::format("continues after the {} values that its header names", total));
  return idx;
}

}  // namespace stiefel
