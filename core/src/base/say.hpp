// Messages in addition to the output of a command.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace stiefel {

/// Prints to stderr. A failure to print, e.g. because a pipe's reader is gone, does not end the training.
template <class... T> void say(fmt::format_string<T...> text, T&&... values) {
  std::fputs(fmt::format(text, std::forward<T>(values)...).c_str(), stderr);
}

}  // namespace stiefel
