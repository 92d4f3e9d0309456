/// Finite groups by name: Z5 (cyclic), S4 (symmetric), A5 (alternating), and direct products such as Z2xS3.
///
/// Elements are numbers from 0, the identity; permutations are in lexicographic order, pairs (i, j) of a product G × H
/// have the number i·|H| + j. ab means "first a, then b": (ab)(i) = b(a(i)).
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/error.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

class Group {
 public:
  static constexpr Index most = 1000;  ///< elements

  /// Throws Error for a name that is none, or for more elements than `most`.
  explicit Group(std::string_view name) {
    const std::size_t cross = name.find('x');
    *this = cross == name.npos ? factor(name) : product(factor(name.substr(0, cross)), Group(name.substr(cross + 1)));
  }

  Index order() const { return Index(moved_.size()); }
  std::int32_t product(std::int32_t a, std::int32_t b) const { return table_[std::size_t(a * order() + b)]; }
  /// How many points the permutation moves; in a cyclic group all or none.
  Index moved(Index element) const { return moved_[std::size_t(element)]; }

 private:
  Group(std::vector<Index> moved, std::vector<std::int16_t> table)
      : moved_(std::move(moved)), table_(std::move(table)) {}

  static Group factor(std::string_view name) {
    Index n = 0;
    const char* end = name.data() + name.size();
    const bool read = name.size() > 1 && std::from_chars(name.data() + 1, end, n).ptr == end;
    if (!read || n < 1 || std::string_view("ZSA").find(name[0]) == std::string_view::npos)
      throw Error(fmt::format("\"{}\" is not a group: write Z5, S4, A5, or a product such as Z2xS3", name));
    if (name[0] == 'Z' ? n > most : n > (name[0] == 'S' ? 6 : 7))
      throw Error(fmt::format("{} has more than {} elements", name, most));
    std::vector<std::vector<Index>> elements;
    std::vector<Index> p(static_cast<std::size_t>(n));
    std::iota(p.begin(), p.end(), 0);
    if (name[0] == 'Z')
      for (Index k = 0; k < n; ++k, std::rotate(p.begin(), p.begin() + 1, p.end())) elements.push_back(p);
    else
      do
        if (name[0] == 'S' || even(p)) elements.push_back(p);
      while (std::ranges::next_permutation(p).found);
    return of_permutations(elements);
  }

  static bool even(const std::vector<Index>& p) {
    bool even = true;
    for (std::size_t i = 0; i < p.size(); ++i)
      for (std::size_t j = i + 1; j < p.size(); ++j) even ^= p[i] > p[j];
    return even;
  }

  static Group of_permutations(const std::vector<std::vector<Index>>& elements) {
    std::map<std::vector<Index>, std::int16_t> numbers;
    std::vector<Index> moved;
    for (const auto& p : elements) {
      numbers.emplace(p, std::int16_t(moved.size()));
      Index& points = moved.emplace_back(0);
      for (std::size_t i = 0; i < p.size(); ++i) points += p[i] != Index(i);
    }
    std::vector<std::int16_t> table;
    std::vector<Index> ab(elements[0].size());
    for (const auto& a : elements)
      for (const auto& b : elements) {
        for (std::size_t i = 0; i < a.size(); ++i) ab[i] = b[std::size_t(a[i])];
        table.push_back(numbers.at(ab));
      }
    return {std::move(moved), std::move(table)};
  }

  static Group product(const Group& G, const Group& H) {
    const Index order = G.order() * H.order();
    if (order > most) throw Error(fmt::format("the product has {} elements, more than {}", order, most));
    std::vector<Index> moved;
    std::vector<std::int16_t> table;
    for (Index a = 0; a < order; ++a) {
      const auto [i, j] = std::pair(std::int32_t(a / H.order()), std::int32_t(a % H.order()));
      moved.push_back(G.moved(i) + H.moved(j));
      for (Index b = 0; b < order; ++b)
        table.push_back(std::int16_t(G.product(i, std::int32_t(b / H.order())) * H.order() +
                                     H.product(j, std::int32_t(b % H.order()))));
    }
    return {std::move(moved), std::move(table)};
  }

  std::vector<Index> moved_;         // of each element
  std::vector<std::int16_t> table_;  // entry a·order + b: ab
};

}  // namespace stiefel
