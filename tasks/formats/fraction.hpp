/// Parts of data that are given as fractions of the whole.
#pragma once

#include <fmt/format.h>

#include <string>

#include <stiefel/error.hpp>
#include <stiefel/index.hpp>

namespace stiefel {

/// How many of `all` items are the fraction that `key` gives, rounded down. Error(Exit::data) when a fraction above 0
/// is not even one item; `item` and `remedy` are for its message.
inline Index share_of(Index all, double fraction, const std::string& key, const std::string& path,
                      const std::string& item, const std::string& remedy) {
  const auto share = Index(fraction * double(all) * (1 + 1e-12));  // 0.29 of 100 is 29
  if (all > 0 && fraction > 0 && share == 0)
    throw Error(fmt::format("{} has {} {}{}: too few for a `{}` of {}. Raise it, set it to 0, or {}.", path, all, item,
                            all == 1 ? "" : "s", key, fraction, remedy),
                Exit::data);
  return share;
}

}  // namespace stiefel
