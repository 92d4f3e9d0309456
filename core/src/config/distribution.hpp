// What a key of a sweep is drawn from: {uniform: [0, 1]}, {log_uniform: [1e-5, 1e-2]}, {integer: [1, 64]}, {choice: [a,
// b]}.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <stiefel/random.hpp>

#include "config/scalars.hpp"

namespace stiefel {

struct Distribution {
  std::string kind;
  double low = 0, high = 0;  ///< an integer may be either, a number is below `high`
  std::vector<Node> choices;
  Location where;

  /// A scalar as it could be written in a file. Numbers of log_uniform are rounded to six digits, so that they do not
  /// depend on the library's exp.
  Node draw(Rng& rng) const;
};

/// Reads the mapping at `key` of a sweep.
std::optional<Distribution> read_distribution(const Node& node, const std::string& key, Problems& problems);

}  // namespace stiefel
