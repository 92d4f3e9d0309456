#include "results/analysis/significance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <map>

#include <stiefel/error.hpp>

namespace stiefel {
namespace {

/// The value of each seed and fold.
std::map<std::string, double> by_repetition(const ComparedGroup& group) {
  std::map<std::string, double> values;
  for (const ComparedRun* run : group.runs)
    if (run->finished() && std::isfinite(run->value) && !values.emplace(repetition_of(*run), run->value).second)
      throw Error(
          fmt::format("--test: two runs of a row have seed {}, such as {}, so runs do not form pairs; choose "
                      "with --where, or add a key to --by",
                      repetition_of(*run), run->path.string()));
  return values;
}

}  // namespace

double half_confidence_interval(const Statistics& statistics) {
  if (statistics.count < 2) return std::numeric_limits<double>::quiet_NaN();
  const double n = double(statistics.count);
  return quantile(boost::math::students_t(n - 1), 0.975) * statistics.deviation / std::sqrt(n);
}

PairedTest signed_rank_test(std::vector<double> differences) {
  PairedTest test{differences.size()};
  if (differences.empty()) return test;
  std::erase(differences, 0);
  std::ranges::sort(differences, {}, [](double x) { return std::abs(x); });
  std::vector<std::size_t> ranks;  // twice the ranks, which are whole numbers or halves
  std::size_t positive = 0, sum = 0;
  for (std::size_t begin = 0, end; begin < differences.size(); begin = end) {
    for (end = begin; end < differences.size() && std::abs(differences[end]) == std::abs(differences[begin]);) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      ranks.push_back(begin + end + 1);
      sum += ranks.back();
      if (differences[i] > 0) positive += ranks.back();
    }
  }
  std::vector<double> share(sum + 1);  // of the signs whose positive ranks have this sum
  share[0] = 1;
  std::size_t largest = 0;
  for (const std::size_t rank : ranks) {
    largest += rank;
    for (std::size_t at = largest + 1; at-- > 0;) share[at] = (share[at] + (at < rank ? 0 : share[at - rank])) / 2;
  }
  double tail = 0;
  for (std::size_t at = 0; at <= std::min(positive, sum - positive); ++at) tail += share[at];
  test.p = std::min(1., 2 * tail);
  return test;
}

PairedTest signed_rank_test(const ComparedGroup& a, const ComparedGroup& b) {
  const std::map<std::string, double> first = by_repetition(a), second = by_repetition(b);
  std::vector<double> differences;
  for (const auto& [seed, value] : first)
    if (const auto other = second.find(seed); other != second.end()) differences.push_back(value - other->second);
  if (differences.size() > most_pairs)
    throw Error(fmt::format("--test: {} pairs are more than {}; choose with --where", differences.size(), most_pairs));
  return signed_rank_test(std::move(differences));
}

}  // namespace stiefel
