#include "base/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace stiefel {

std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                             : first >= 0xE0 && first <= 0xEF ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte(k) & 0xC0) != 0x80) return 0;
  const bool bad = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
                   (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F);
  return bad ? 0 : length;
}

bool is_control(std::string_view character) {
  const auto between = [&](std::string_view first, std::string_view last) {
    return character.size() == first.size() && character >= first && character <= last;
  };
  const bool c0 = static_cast<unsigned char>(character[0]) < ' ' && character != "\n";
  return c0 || character == "\x7f" || between("\u0080", "\u009f") || character == "\u061c" ||
         between("\u200e", "\u200f") || between("\u202a", "\u202e") || between("\u2066", "\u2069");
}

std::string printable_lines(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0 || is_control(text.substr(i, length)))
      for (std::size_t k = 0; k < std::max<std::size_t>(length, 1); ++k)
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i + k]));
    else
      result += text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return result;
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : printable_lines(text)) result += c == '\n' ? std::string("\\n") : std::string(1, c);
  return result;
}

std::string shell_word(std::string_view text) {
  static constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!text.empty() && text.find_first_not_of(plain) == text.npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string shell_line(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = char(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string counted(std::int64_t count, std::string_view noun, std::string_view plural) {
  return count == 1 || plural.empty() ? fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s")
                                      : fmt::format("{} {}", count, plural);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 10) return fmt::format("{:.2g} s", seconds);
  const long s = std::lround(seconds);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
}

}  // namespace stiefel
