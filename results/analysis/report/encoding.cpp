#include "results/analysis/report/encoding.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <boost/algorithm/hex.hpp>
#include <utility>

#include "base/printable.hpp"
#include "base/sha256.hpp"
#include "results/analysis/run_tables.hpp"

namespace stiefel::report {
namespace {

bool continues(std::string_view text, std::size_t i) {
  return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
}

std::string escaped_character(std::string_view character) {
  if (character == "\uFFFE" || character == "\uFFFF") return "\uFFFD";  // XML has no such characters
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

}  // namespace

std::string escape(std::string_view text) {
  const std::string shown = printable_lines(text);
  std::string escaped;
  for (std::size_t i = 0, length; i < shown.size(); i += length) {
    length = utf8_length(shown, i);
    escaped += escaped_character(std::string_view(shown).substr(i, length));
  }
  return escaped;
}

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), reinterpret_cast<const unsigned char*>(bytes.data()),
                  int(bytes.size()));
  return text;
}

std::string content_hash(std::string_view text) {
  return "'sha256-" + base64(boost::algorithm::unhex(sha256(text))) + "'";
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) line += (&field == &fields[0] ? "" : ",") + csv_field(field);
  return line + '\n';
}

std::vector<std::vector<std::string>> csv_rows(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  bool quoted = false, begins = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::exchange(begins, false)) rows.emplace_back(1);
    std::vector<std::string>& row = rows.back();
    if (text[i] == '"') {
      if (!quoted && i > 0 && text[i - 1] == '"') row.back() += '"';
      quoted = !quoted;
    } else if (quoted || (text[i] != ',' && text[i] != '\n')) {
      row.back() += text[i];
    } else if (text[i] == ',') {
      row.emplace_back();
    } else {
      begins = true;
    }
  }
  return rows;
}

std::string download_link(std::string_view content, std::string_view type, std::string_view file,
                          std::string_view label) {
  return fmt::format("<a download=\"{}\" href=\"data:{};base64,{}\">{}</a>", escape(file), type, base64(content),
                     escape(label));
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
