// UTF-8 as of RFC 3629: one to four bytes a code point, each in the shortest form, no surrogates, nothing above
// U+10FFFF.
#include "tasks/formats/text.hpp"

#include <fmt/format.h>
#include <algorithm>

#include <stiefel/error.hpp>
#include "tasks/formats/named_file.hpp"

namespace stiefel {
namespace {

constexpr char32_t no_point = 0xffffffff;

struct Form {
  std::size_t length;  // 0: no code point begins so
  char32_t bits, least;
};

Form form_of(unsigned char first) {
  if (first < 0x80) return {1, first, 0};
  if (first >= 0xc0 && first < 0xe0) return {2, first & 0x1fu, 0x80};
  if (first >= 0xe0 && first < 0xf0) return {3, first & 0x0fu, 0x800};
  if (first >= 0xf0 && first < 0xf8) return {4, first & 0x07u, 0x10000};
  return {0, 0, 0};
}

[[noreturn]] void refuse(std::string_view bytes, std::size_t place, const std::string& file, const TextPlace& begin,
                         std::string_view what) {
  const auto line = begin.line + std::size_t(std::count(bytes.begin(), bytes.begin() + std::ptrdiff_t(place), '\n'));
  throw Error(fmt::format("{}: byte {} (line {}) is {:02x}, {}", file, begin.byte + place, line,
                          static_cast<unsigned char>(bytes[place]), what),
              Exit::data);
}

/// The code point at `place`, which moves behind it; no_point where none begins.
char32_t decode(std::string_view bytes, std::size_t& place) {
  const Form form = form_of(static_cast<unsigned char>(bytes[place]));
  if (form.length == 0 || form.length > bytes.size() - place) return no_point;
  char32_t point = form.bits;
  for (std::size_t i = 1; i < form.length; ++i) {
    const auto next = static_cast<unsigned char>(bytes[place + i]);
    if ((next & 0xc0) != 0x80) return no_point;
    point = point << 6 | (next & 0x3fu);
  }
  if (point < form.least || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return no_point;
  place += form.length;
  return point;
}

std::u32string_view trimmed(std::u32string_view line, LineRules::Trim trim) {
  if (trim == LineRules::Trim::none) return line;
  while (!line.empty() && line.back() == U' ') line.remove_suffix(1);
  if (trim == LineRules::Trim::both)
    while (!line.empty() && line.front() == U' ') line.remove_prefix(1);
  return line;
}

void append(std::u32string& points, std::u32string_view line, bool unk) {
  constexpr std::u32string_view word = U"<unk>";
  for (std::size_t found; unk && (found = line.find(word)) != line.npos; line.remove_prefix(found + word.size()))
    (points += line.substr(0, found)) += unk_symbol;
  points += line;
}

/// Whether the first two characters have `size` bytes each, all of them zero but that at `place`.
bool begins_with_ascii(std::string_view bytes, std::size_t size, std::size_t place) {
  if (bytes.size() < 2 * size) return false;
  for (std::size_t i = 0; i < 2 * size; ++i)
    if ((bytes[i] != 0) != (i % size == place)) return false;
  return true;
}

}  // namespace

std::string_view other_than_text(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr std::string_view utf16 = "UTF-16 text. Convert the file: iconv -f UTF-16 -t UTF-8 FILE",
                             utf32 = "UTF-32 text. Convert the file: iconv -f UTF-32 -t UTF-8 FILE",
                             pickle = "a pickle. Save the data as text, for example by to_csv of pandas";
  constexpr std::pair<std::string_view, std::string_view> kinds[] = {
      {"\xff\xfe\0\0"sv, utf32},  // before UTF-16, whose mark is the same
      {"\0\0\xfe\xff"sv, utf32},
      {"\xff\xfe", utf16},
      {"\xfe\xff", utf16},
      {"\x1f\x8b", "a file compressed by gzip. Decompress it: gzip -dc FILE"},
      {"\xfd"
       "7zXZ",
       "a file compressed by xz. Decompress it: xz -dc FILE"},
      {"\x28\xb5\x2f\xfd", "a file compressed by zstd. Decompress it: zstd -dc FILE"},
      {"\x80\x04", pickle},
      {"\x80\x05", pickle},
      {"\x89HDF", "an HDF5 file. Save the data as CSV, or each array with numpy.save"},
      {"\x93NUMPY", "a NumPy array. Give the file a name that ends in .npy"},
      {"PAR1\x15", "a Parquet file. Save the table as CSV: to_csv(..., index=False) of pandas"},
      {"PK\x03\x04", "a ZIP archive, which .xlsx files are, too. Extract the file, or save the table as CSV"}};
  for (const auto& [begin, kind] : kinds)
    if (bytes.starts_with(begin)) return kind;
  if (bytes.size() > 4 && bytes.starts_with("BZh") && bytes.substr(4).starts_with("1AY&SY"))
    return "a file compressed by bzip2. Decompress it: bzip2 -dc FILE";
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WAVE"))
    return "a WAV sound. Save its samples, or what was computed from them, as an array: numpy.save";
  if (bytes.size() > 262 && bytes.substr(257, 5) == "ustar") return "a tar archive. Extract the file: tar -xf FILE";
  if (begins_with_ascii(bytes, 2, 0)) return "UTF-16 text. Convert the file: iconv -f UTF-16LE -t UTF-8 FILE";
  if (begins_with_ascii(bytes, 2, 1)) return "UTF-16 text. Convert the file: iconv -f UTF-16BE -t UTF-8 FILE";
  if (begins_with_ascii(bytes, 4, 0)) return "UTF-32 text. Convert the file: iconv -f UTF-32LE -t UTF-8 FILE";
  if (begins_with_ascii(bytes, 4, 3)) return "UTF-32 text. Convert the file: iconv -f UTF-32BE -t UTF-8 FILE";
  return {};
}

std::size_t first_not_utf8(std::string_view bytes) {
  for (std::size_t place = 0; place < bytes.size();)
    if (static_cast<unsigned char>(bytes[place]) < 0x80)
      ++place;
    else if (decode(bytes, place) == no_point)
      return place;
  return bytes.npos;
}

std::u32string decode_text(std::string_view bytes, const std::string& file, const TextPlace& begin) {
  std::u32string points;
  points.reserve(bytes.size());
  if (const std::string_view other = other_than_text(bytes); begin.byte == 0 && !other.empty())
    refuse(bytes, 0, file, begin, fmt::format("which begins {}", other));
  std::size_t place = begin.byte == 0 && bytes.starts_with("\xef\xbb\xbf") ? 3 : 0;
  while (place < bytes.size()) {
    if (bytes.substr(place, 2) == "\r\n") ++place;
    const std::size_t first = place;
    const char32_t point = decode(bytes, place);
    if (point == no_point) refuse(bytes, place, file, begin, fmt::format("which is {}", not_utf8));
    if (point == 0) refuse(bytes, first, file, begin, "which text cannot have: this is not a text file");
    points += point;
  }
  return points;
}

std::u32string read_text(const std::string& path) { return decode_text(bytes_of({path, ""}), path); }

std::string encode_utf8(char32_t point) {
  const auto rest = [point](int shift) { return char(0x80 | (point >> shift & 0x3f)); };
  if (point < 0x80) return {char(point)};
  if (point < 0x800) return {char(0xc0 | point >> 6), rest(0)};
  if (point < 0x10000) return {char(0xe0 | point >> 12), rest(6), rest(0)};
  return {char(0xf0 | point >> 18), rest(12), rest(6), rest(0)};
}

Lines take_lines(std::u32string_view text, const LineRules& rules) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(U'\n'), text.size());
    const bool ended = length < text.size();
    if (rules.longest == 0 || length + ended <= rules.longest) {
      lines.begins.push_back(lines.points.size());
      append(lines.points, trimmed(text.substr(0, length), rules.trim), rules.unk);
      if (rules.ends && (ended || rules.last_end)) lines.points += U'\n';
    }
    text.remove_prefix(length + ended);
  }
  lines.begins.push_back(lines.points.size());
  return lines;
}

}  // namespace stiefel
