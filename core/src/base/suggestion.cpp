// Optimal string alignment distance D(i, j) = min(D(i−1, j) + 1, D(i, j−1) + 1, D(i−1, j−1) + [a_i ≠ b_j], swap: D(i−2,
// j−2) + 1).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/suggestion.hpp"

namespace stiefel {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = int(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = int(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::vector<std::string> close_names(std::string_view name, const std::vector<std::string>& names) {
  const int allowed = name.size() <= 3 ? 1 : 2;
  std::vector<std::string> close;
  for (int distance = 0; distance <= allowed; ++distance)
    for (const std::string& other : names)
      if (edit_distance(name, other) == distance && std::find(close.begin(), close.end(), other) == close.end())
        close.push_back(other);
  if (!close.empty()) return close;
  const std::string words = fmt::format("_{}_", name == "lr" ? "learning_rate" : name);
  std::ranges::copy_if(names, std::back_inserter(close), [&](const std::string& other) {
    return !other.empty() && words.find("_" + other + "_") != words.npos;
  });
  return close;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& names) {
  const std::vector<std::string> close = close_names(name, names);
  return close.empty() ? std::string() : fmt::format("; did you mean '{}'?", fmt::join(close, "' or '"));
}

}  // namespace stiefel
