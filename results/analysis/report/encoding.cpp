#include "results/analysis/report/encoding.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstdint>

#include "base/sha256.hpp"

namespace stiefel::report {
namespace {

constexpr const char* replacement = "\xEF\xBF\xBD";

bool continues(std::string_view text, std::size_t i) {
  return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
}

/// Bytes of the character at i; 0 when there is none that may stand in XML.
std::size_t character_at(std::string_view text, std::size_t i) {
  const auto first = static_cast<unsigned char>(text[i]);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if (!continues(text, i + k)) return 0;
  const auto second = static_cast<unsigned char>(text[i + 1]);
  const bool too_long = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate_or_beyond = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  const bool none = first == 0xEF && second == 0xBF && static_cast<unsigned char>(text[i + 2]) >= 0xBE;
  return too_long || surrogate_or_beyond || none ? 0 : length;
}

std::string escaped_character(std::string_view character) {
  switch (character[0]) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return std::string(character);
  }
}

std::string_view first_characters(std::string_view text, std::size_t count) {
  std::size_t i = 0;
  for (; i < text.size(); ++i)
    if (!continues(text, i) && count-- == 0) break;
  return text.substr(0, i);
}

std::string bytes_of_hexadecimal(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += char(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  return bytes;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_at(text, i);
    escaped += length == 0 ? replacement : escaped_character(text.substr(i, length));
    i += std::max<std::size_t>(length, 1);
  }
  return escaped;
}

std::string base64(std::string_view bytes) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += i + k > bytes.size() ? '=' : digits[group >> (18 - 6 * k) & 63];
  }
  return text;
}

std::string content_hash(std::string_view text) {
  return "'sha256-" + base64(bytes_of_hexadecimal(sha256(text))) + "'";
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i) line += ',';
    if (fields[i].find_first_of(",\"\r\n") == std::string::npos) {
      line += fields[i];
      continue;
    }
    line += '"';
    for (const char c : fields[i]) line += c == '"' ? "\"\"" : std::string(1, c);
    line += '"';
  }
  return line + '\n';
}

std::string download_link(std::string_view content, std::string_view type, std::string_view file,
                          std::string_view label) {
  return fmt::format("<a download=\"{}\" href=\"data:{};base64,{}\">{}</a>", escape(file), type, base64(content),
                     escape(label));
}

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = char(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) count += !continues(text, i);
  return count;
}

std::string shortened(std::string_view text, std::size_t most) {
  return characters(text) <= most ? std::string(text) : std::string(first_characters(text, most - 1)) + "…";
}

std::vector<std::string> wrapped(std::string_view text, std::size_t most, std::size_t lines) {
  std::vector<std::string> found;
  while (characters(text) > most && found.size() + 1 < lines) {
    const std::string_view line = first_characters(text, most);
    const std::size_t space = line.rfind(' '), end = space == line.npos ? line.size() : space + 1;
    found.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  found.push_back(shortened(text, most));
  return found;
}

}  // namespace stiefel::report
