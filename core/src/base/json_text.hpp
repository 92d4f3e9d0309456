// JSON as text, of names that may hold any bytes: those that are not UTF-8 become U+FFFD.
#pragma once

#include <string>

namespace stiefel {

/// `indent` < 0: in one line.
template <class Json> std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stiefel
