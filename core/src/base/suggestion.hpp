// "did you mean …": the names closest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
STIEFEL_API int edit_distance(std::string_view a, std::string_view b);

/// The paths whose last key is the name: optimizer.rate for rate. If there are none, the names at distance ≤ 2 (for
/// names of up to 4 letters: 1), nearest first, in the given order among equals. If there are none, those that are a
/// word of the name, as a whole or by their last key: batch for batch_size, optimizer.rate for learning_rate or lr.
STIEFEL_API std::vector<std::string> close_names(std::string_view name, const std::vector<std::string>& names);

/// "; did you mean 'a' or 'b'?" with the first three, or an empty text.
STIEFEL_API std::string suggestion(std::string_view name, const std::vector<std::string>& names);

/// What to write instead of the ~ that a missing path begins with, or an empty text.
STIEFEL_API std::string home_hint(std::string_view path);

}  // namespace stiefel
