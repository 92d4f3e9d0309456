// Optimal string alignment distance D(i, j) = min(D(i−1, j) + 1, D(i, j−1) + 1, D(i−1, j−1) + [a_i ≠ b_j], swap: D(i−2,
// j−2) + 1).
#include <fmt/format.h>

#include <algorithm>
#include <functional>
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
  const int allowed = name.size() <= 4 ? 1 : 2;
  const auto last_key = [](const std::string& path) { return path.substr(path.rfind('.') + 1); };
  std::vector<std::string> close;
  std::ranges::copy_if(names, std::back_inserter(close), [&](const auto& other) { return last_key(other) == name; });
  if (!close.empty()) return close;
  std::vector<std::string> near;  // by length, as the distance of long names takes long
  std::ranges::copy_if(names, std::back_inserter(near), [&](const std::string& other) {
    return other.size() <= name.size() + 2 && name.size() <= other.size() + 2;
  });
  for (int distance = 1; distance <= allowed; ++distance)
    for (const std::string& other : near)
      if (edit_distance(name, other) == distance && std::ranges::find(close, other) == close.end())
        close.push_back(other);
  if (!close.empty()) return close;
  const std::string words = fmt::format("_{}_", name == "lr" ? "learning_rate" : name);
  std::ranges::copy_if(names, std::back_inserter(close), [&](const std::string& other) {
    return !other.empty() && words.find("_" + last_key(other) + "_") != words.npos;
  });
  std::ranges::stable_sort(close, std::greater(), [&](const std::string& other) { return last_key(other).size(); });
  return close;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& names) {
  std::vector<std::string> close = close_names(name, names);
  close.resize(std::min<std::size_t>(close.size(), 3));
  return close.empty() ? std::string() : fmt::format("; did you mean '{}'?", fmt::join(close, "' or '"));
}

std::string home_hint(std::string_view path) {
  return path.starts_with('~') ? ". ~ is not expanded here: write the full path, or $HOME in a shell" : "";
}

}  // namespace stiefel
