// Checks of what a caller passes to the SDK. In a plugin the guard around its call adds its name and the function.
#pragma once

#include <fmt/format.h>

#include <stiefel/error.hpp>

namespace stiefel {

template <class... Values>
void require(bool holds, fmt::format_string<const Values&...> sentence, const Values&... values) {
  if (!holds) throw Error(fmt::format(sentence, values...), Exit::internal);
}

}  // namespace stiefel
