// The grammar of scalars: integers [+-](0|[1-9][0-9]*), numbers with point or exponent, true and false, everything else
// is text.
#include "config/scalars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string.hpp>
#include <charconv>
#include <cmath>

#include "base/printable.hpp"
#include "base/suggestion.hpp"

namespace stiefel {
namespace {

constexpr std::array type_names = {"true or false",      "an integer",        "a number",         "a string",
                                   "a list of integers", "a list of numbers", "a list of strings"};

std::string_view unsigned_part(std::string_view text) {
  return text.substr(!text.empty() && (text[0] == '-' || text[0] == '+'));
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Digits, with or without a point, with or without an exponent.
bool looks_like_number(std::string_view text) {
  std::string_view rest = unsigned_part(text);
  const auto digits = [&rest] {
    const std::size_t count = std::min(rest.find_first_not_of("0123456789"), rest.size());
    rest.remove_prefix(count);
    return count;
  };
  std::size_t mantissa = digits();
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    mantissa += digits();
  }
  if (mantissa == 0) return false;
  if (!rest.empty() && (rest[0] == 'e' || rest[0] == 'E')) {
    rest = unsigned_part(rest.substr(1));
    if (digits() == 0) return false;
  }
  return rest.empty();
}

bool has_leading_zero(std::string_view text) {
  const std::string_view digits = unsigned_part(text);
  return digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
}

std::string lower(std::string_view text) { return boost::to_lower_copy(std::string(text), std::locale::classic()); }

bool is_nan_or_infinity(std::string_view text) {
  std::string word = lower(unsigned_part(text));
  if (word.starts_with('.')) word.erase(0, 1);
  return word == "nan" || word == "inf" || word == "infinity";
}

double to_double(std::string_view text, bool& fits) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  fits = result.ec == std::errc() && std::isfinite(value);
  return value;
}

/// A hint on why the node is not a number of the requested kind, if there is a helpful one.
std::string number_hint(const Node& node, bool integer) {
  const std::string& text = node.text;
  if (node.quoted && looks_like_number(text)) return "; remove the quotes";
  if (is_nan_or_infinity(text)) return "; NaN and infinity are refused";
  if (has_leading_zero(text)) return "; numbers have no leading zeros";
  std::string plain = text;
  std::erase(plain, '_');
  std::ranges::replace(plain, ',', '.');
  std::vector<std::string> parts;
  boost::split(parts, text, boost::is_any_of(","));
  const bool several = std::ranges::all_of(parts, looks_like_number);
  if (plain != text && looks_like_number(plain) && !(integer && several)) return fmt::format("; write {}", plain);
  if (several && plain != text) return fmt::format("; `stiefel sweep run` trains a run for each of [{}]", text);
  if (lower(unsigned_part(text)).starts_with("0x") || lower(unsigned_part(text)).starts_with("0o"))
    return "; write it in decimal";
  if (integer && looks_like_number(text)) {
    bool fits = false;
    const double value = to_double(text, fits);
    if (fits && value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("; write {:.0f}", value);
  }
  return {};
}

template <class T> bool read_one(const Node& node, T& value, std::string& sentence);

template <> bool read_one(const Node& node, bool& value, std::string& sentence) {
  if (node.kind == Node::Kind::scalar && !node.quoted && (node.text == "true" || node.text == "false")) {
    value = node.text == "true";
    return true;
  }
  const std::string word = lower(node.text);
  const bool yes = word == "true" || word == "yes" || word == "on" || word == "y" || word == "1";
  const bool no = word == "false" || word == "no" || word == "off" || word == "n" || word == "0";
  const std::string hint = node.kind != Node::Kind::scalar ? ""
                           : yes                           ? "; write true"
                           : no                            ? "; write false"
                                                           : suggestion(word, {"true", "false"});
  sentence = "must be true or false, got " + shown(node) + hint;
  return false;
}

template <> bool read_one(const Node& node, Index& value, std::string& sentence) {
  const std::string& text = node.text;
  if (node.kind == Node::Kind::scalar && !node.quoted && all_digits(unsigned_part(text)) && !has_leading_zero(text)) {
    const std::string_view digits = text.starts_with('+') ? std::string_view(text).substr(1) : std::string_view(text);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc()) return true;
    sentence = fmt::format("must be an integer of at most 64 bits, got {}", shortened(text));
    return false;
  }
  sentence =
      "must be an integer, got " + shown(node) + (node.kind == Node::Kind::scalar ? number_hint(node, true) : "");
  return false;
}

template <> bool read_one(const Node& node, double& value, std::string& sentence) {
  if (node.kind == Node::Kind::scalar && !node.quoted && looks_like_number(node.text) && !has_leading_zero(node.text)) {
    bool fits = false;
    value = to_double(node.text, fits);
    if (fits) return true;
    sentence = fmt::format("must be a number that fits a double, got {}", shortened(node.text));
    return false;
  }
  sentence = "must be a number, got " + shown(node) + (node.kind == Node::Kind::scalar ? number_hint(node, false) : "");
  return false;
}

template <> bool read_one(const Node& node, std::string& value, std::string& sentence) {
  if (node.kind == Node::Kind::scalar) {
    value = node.text;
    return true;
  }
  sentence = "must be a string, got " + shown(node);
  return false;
}

template <class T> bool read_typed(const Node& node, T& value, std::vector<Fault>& faults) {
  T read{};
  std::string sentence;
  if (read_one(node, read, sentence)) {
    value = std::move(read);
    return true;
  }
  faults.push_back({node.where, std::move(sentence)});
  return false;
}

template <class T> bool read_typed(const Node& node, std::vector<T>& list, std::vector<Fault>& faults) {
  if (node.kind != Node::Kind::sequence) {
    std::string hint;
    if (node.kind == Node::Kind::scalar)
      hint = node.text.starts_with('[') && !node.quoted
                 ? "; close the [ with ]"
                 : fmt::format("; write [{}]", node.quoted ? shown(node) : shortened(node.text));
    faults.push_back({node.where, fmt::format("must be {}, got {}{}", type_name(Value(list)), shown(node), hint)});
    return false;
  }
  std::vector<T> read;
  const std::size_t before = faults.size();
  for (const Node& item : node.items) {
    T value{};
    std::string sentence;
    if (!read_one(item, value, sentence))
      faults.push_back({item.where, fmt::format("entry {} {}", read.size(), sentence)});
    read.push_back(std::move(value));
  }
  if (faults.size() > before) return false;
  list = std::move(read);
  return true;
}

template <class T> std::string list_text(const std::vector<T>& list) {
  std::string text;
  for (const T& entry : list) text += (text.empty() ? "" : ", ") + yaml_text(Value(entry));
  return "[" + text + "]";
}

}  // namespace

std::string type_name(const Value& value) { return type_names[value.index()]; }

bool read_value(const Node& node, Value& value, std::vector<Fault>& faults) {
  return std::visit([&](auto& typed) { return read_typed(node, typed, faults); }, value);
}

std::string shown(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::map:
      return "a mapping";
    case Node::Kind::scalar:
      break;
  }
  return "'" + shortened(node.text) + "'";
}

std::string shortened(std::string_view text) {
  std::size_t length = std::min<std::size_t>(text.size(), 60);
  while (length > 0 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80)
    --length;  // within a UTF-8 character
  return printable(text.substr(0, length)) + (length < text.size() ? "…" : "");
}

std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  // YAML 1.1 readers take 1e-05 for text; with a point they do not.
  const std::size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos) text.insert(exponent, ".0");
  return text;
}

std::string quoted_text(std::string_view text) {
  static const std::vector<std::string> words = {"true", "false", "null", "yes", "no", "on",
                                                 "off",  "y",     "n",    "nan", "inf"};
  const auto letter = [](unsigned char c) { return std::isalpha(c) || c == '_' || c == '/' || c >= 0x80; };
  const auto plain = [&](unsigned char c) {
    return letter(c) || std::isdigit(c) || c == '.' || c == '-' || c == ' ' || c == '+';
  };
  if (!text.empty() && letter(static_cast<unsigned char>(text[0])) && text.back() != ' ' &&
      std::ranges::all_of(text, plain) && std::ranges::find(words, lower(text)) == words.end())
    return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + '"';
}

std::string yaml_text(const Value& value) {
  struct Writer {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(Index v) const { return std::to_string(v); }
    std::string operator()(double v) const { return number_text(v); }
    std::string operator()(const std::string& v) const { return quoted_text(v); }
    std::string operator()(const std::vector<Index>& v) const { return list_text(v); }
    std::string operator()(const std::vector<double>& v) const { return list_text(v); }
    std::string operator()(const std::vector<std::string>& v) const { return list_text(v); }
  };
  return std::visit(Writer{}, value);
}

}  // namespace stiefel
