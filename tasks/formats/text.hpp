/// Text in UTF-8 as Unicode code points, and its lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stiefel {

constexpr std::string_view not_utf8 = "not valid UTF-8. Convert the file: iconv -f ENCODING -t UTF-8 FILE";
/// What a file is that its first bytes show not to be text in UTF-8, and what to do; empty for any other.
std::string_view other_than_text(std::string_view bytes);
/// Offset of the first byte that is not UTF-8 (overlong forms and surrogates included); npos if there is none.
std::size_t first_not_utf8(std::string_view bytes);

/// Where bytes begin in their file.
struct TextPlace {
  std::size_t byte = 0, line = 1;
};

/// A byte order mark at the beginning of the file is left out, "\r\n" becomes "\n". Error(Exit::data) names the file,
/// the byte and its line where the bytes are not UTF-8 or are zero.
std::u32string decode_text(std::string_view bytes, const std::string& file, const TextPlace& begin = {});
std::u32string read_text(const std::string& path);

std::string encode_utf8(char32_t point);

/// Stands for `<unk>` where that is one symbol; no code point.
constexpr char32_t unk_symbol = 0x110000;

struct LineRules {
  enum class Trim { none, end, both } trim = Trim::none;  ///< blanks at the ends of a line that are left out
  bool unk = false;                                       ///< `<unk>` becomes unk_symbol
  bool ends = false;                                      ///< a line is followed by "\n", the last one if it was so
  bool last_end = false;                                  ///< the last one in any case
  std::size_t longest = 0;  ///< lines of more characters, the end counted, are left out; 0: none
};

/// Lines one after another.
struct Lines {
  std::u32string points;
  std::vector<std::size_t> begins;  ///< of each line, then the size of points
};
Lines take_lines(std::u32string_view text, const LineRules& rules);

}  // namespace stiefel
