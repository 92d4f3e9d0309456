// JSON from text and to text, compiled once.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include <stiefel/export.hpp>

namespace stiefel {

/// Throws nlohmann::json::parse_error.
STIEFEL_API nlohmann::json parse_json(std::string_view text);
/// Discarded when the text is not JSON.
STIEFEL_API nlohmann::json parse_json_or_discard(std::string_view text);

/// Names may hold any bytes: those that are not UTF-8 become U+FFFD, and control characters are escaped. `indent` < 0: in one line.
STIEFEL_API std::string json_text(const nlohmann::json& json, int indent = -1);
STIEFEL_API std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace stiefel
