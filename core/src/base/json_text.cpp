#include "base/json_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/printable.hpp"

namespace stiefel {

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }

nlohmann::json parse_json_or_discard(std::string_view text) { return nlohmann::json::parse(text, nullptr, false); }

namespace {

/// Control characters beyond ASCII, all of the basic plane, as \u009b.
std::string escaped(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    const std::string_view character(text.data() + i, length);
    const auto bits = [&](std::size_t k) { return static_cast<unsigned char>(character[k]) & 0x3fu; };
    if (length == 1 || !is_control(character))
      result += character;
    else
      result += fmt::format(
          "\\u{:04x}", length == 2 ? (bits(0) & 0x1f) << 6 | bits(1) : (bits(0) & 0xf) << 12 | bits(1) << 6 | bits(2));
    i += length;
  }
  return result;
}

template <class Json> std::string dumped(const Json& json, int indent) {
  return escaped(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string json_text(const nlohmann::json& json, int indent) { return dumped(json, indent); }

std::string json_text(const nlohmann::ordered_json& json, int indent) { return dumped(json, indent); }

}  // namespace stiefel
