// Sizes and places are read from the list at the end of the archive, because NumPy leaves some out before the arrays.
//
//   end of the list   "PK\5\6", 6 bytes, entries (2), 6 bytes of sizes, where the list begins (4), length of a comment (2)
//   entry             "PK\1\2", 6 bytes, method (2), 8 bytes, compressed size (4), size (4), lengths of the name, of more
//                     fields and of a comment (2 each), 8 bytes, place of the file (4), name
//   file              "PK\3\4", 22 bytes, lengths of the name and of more fields (2 each), both, content
#include "tasks/formats/npz.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <span>

#include <stiefel/error.hpp>

#include "tasks/formats/inflate.hpp"

namespace stiefel {

void NpzFile::refuse(const std::string& what) const {
  throw Error(fmt::format("{}: {}; save it with numpy.savez", path_, what), Exit::data);
}

/// A number of 2 or 4 bytes.
std::size_t NpzFile::number(std::size_t place, std::size_t bytes) const {
  if (place + bytes > bytes_.size()) refuse("the archive is damaged");
  std::size_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes_[place + i]);
  return value;
}

NpzFile::NpzFile(const std::string& path) : path_(path), bytes_(bytes_of({path, ""})) {
  const std::size_t end = bytes_.rfind("PK\5\6");
  if (!bytes_.starts_with("PK") || end == bytes_.npos) refuse("not an .npz file");
  std::size_t place = number(end + 16, 4);
  for (std::size_t left = number(end + 10, 2); left > 0; --left) {
    if (bytes_.substr(std::min(place, bytes_.size()), 4) != "PK\1\2") refuse("the archive is damaged");
    const std::size_t length = number(place + 28, 2);
    std::string name = bytes_.substr(place + 46, length);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    entries_.push_back(
        {name, number(place + 10, 2), number(place + 20, 4), number(place + 24, 4), number(place + 42, 4)});
    place += 46 + length + number(place + 30, 2) + number(place + 32, 2);
  }
}

bool NpzFile::has(const std::string& name) const {
  return std::ranges::find(entries_, name, &Entry::name) != entries_.end();
}

Npy NpzFile::read(const std::string& name) const {
  const auto entry = std::ranges::find(entries_, name, &Entry::name);
  if (entry == entries_.end()) {
    std::vector<std::string> names;
    for (const Entry& other : entries_) names.push_back(other.name);
    throw Error(fmt::format("{}: there is no array {}; it has {}", path_, name, fmt::join(names, ", ")), Exit::data);
  }
  const std::size_t first = entry->header + 30 + number(entry->header + 26, 2) + number(entry->header + 28, 2);
  if (first > bytes_.size() || entry->compressed > bytes_.size() - first)
    refuse(fmt::format("the array {} is larger than 4 GB, or cut off", name));
  const std::string_view content = std::string_view(bytes_).substr(first, entry->compressed);
  const NamedFile file{fmt::format("{}: the array {}", path_, name), ""};
  if (entry->method != 0 && entry->method != 8) file.refuse("is compressed in another way than by numpy");
  const std::string inflated = entry->method == 8 ? inflate_all(content, -15, entry->size + 1, file) : "";
  const std::string_view array = entry->method == 8 ? std::string_view(inflated) : content;
  return parse_npy(std::as_bytes(std::span(array)), file.path);
}

}  // namespace stiefel
