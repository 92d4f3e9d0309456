// A number from text that holds nothing else.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

namespace stiefel {

template <class T> std::optional<T> number_from(std::string_view text) {
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace stiefel
