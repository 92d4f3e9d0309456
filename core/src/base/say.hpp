// What is said beside the output of a command.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace stiefel {

/// On stderr. That nobody hears it, e.g. because a pipe's reader has gone, ends no training.
template <class... T> void say(fmt::format_string<T...> text, T&&... values) {
  std::fputs(fmt::format(text, std::forward<T>(values)...).c_str(), stderr);
}

}  // namespace stiefel
