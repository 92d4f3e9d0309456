// Random streams against a second implementation (tests/golden/random_streams.py), NumPy and statistics.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include <stiefel/error.hpp>
#include <stiefel/numpy_random.hpp>
#include <stiefel/random.hpp>
#include "base/sha256.hpp"

using namespace stiefel;

namespace {

// Σ (observed − expected)² / expected, in standard deviations from its mean: the sum has mean and half its variance k
// − 1.
double chi_square_deviation(const std::vector<double>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  const double freedom = double(counts.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}
double chi_square_deviation(const std::vector<double>& counts, double expected) {
  return chi_square_deviation(counts, std::vector<double>(counts.size(), expected));
}

}  // namespace

TEST_CASE("a stream is the same numbers everywhere") {
  const auto first = [](Rng rng) {
    std::array<std::uint32_t, 6> numbers;
    for (auto& x : numbers) x = rng.bits32();
    return numbers;
  };
  using Words = std::array<std::uint32_t, 6>;
  CHECK(first(Rng(0)) == Words{0xef9f8a95, 0x3bda7988, 0xed381f8d, 0x79405ab1, 0x3fcaf636, 0x28f56ce3});
  CHECK(first(Rng(1, "train", 7)) == Words{0x178623f3, 0x4954e49b, 0x062a5ecd, 0x39581dac, 0xed793bc6, 0x8521177c});
  CHECK(first(Rng(~std::uint64_t(0), "initialise", std::uint64_t(1) << 40)) ==
        Words{0x629c9c0e, 0x53b9bee0, 0xf5d98e46, 0x011791e3, 0xfc297e3e, 0xf24e169b});
  Rng u(5, "u"), n(5, "n");
  for (const double x : {0x1.f2c1fefa614e8p-2, 0x1.cf357855b38d0p-4, 0x1.b8d335c1635dcp-1}) CHECK(u.uniform() == x);
  for (const double x : {0x1.9b878c2b463abp+0, 0x1.7ea38a878b4d0p-1, -0x1.a02ff66f63d83p+0, 0x1.32d778d773d8cp+0,
                         0x1.9b71dcfc5fb0cp-1, 0x1.730ab9217f9ffp+0})
    CHECK(n.normal() == x);
}

TEST_CASE("another seed, name or index is another stream") {
  std::vector<std::uint64_t> heads;
  for (const std::uint64_t seed : {0, 1, 2})
    for (const char* name : {"", "train", "validation", "test"})
      for (const std::uint64_t index : {0, 1, 2}) heads.push_back(Rng(seed, name, index).bits64());
  std::sort(heads.begin(), heads.end());
  CHECK(std::adjacent_find(heads.begin(), heads.end()) == heads.end());
}

TEST_CASE("uniform numbers: range, moments, chi-square, no correlation between neighbouring streams") {
  constexpr int n = 400000, bins = 256;
  std::vector<double> counts(bins);
  double sum = 0, squares = 0, products = 0, low = 1, high = 0;
  Rng rng(11, "uniform", 4), next(11, "uniform", 5);
  for (int i = 0; i < n; ++i) {
    const double x = rng.uniform();
    counts[std::size_t(x * bins)] += 1;
    low = std::min(low, x), high = std::max(high, x);
    sum += x, squares += x * x, products += (x - 0.5) * (next.uniform() - 0.5);
  }
  CHECK(low >= 0);
  CHECK(high < 1);
  CHECK(std::abs(sum / n - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  CHECK(std::abs(squares / n - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / n));
  CHECK(std::abs(products / n) < 5 / 12.0 / std::sqrt(n));
  CHECK(std::abs(chi_square_deviation(counts, double(n) / bins)) < 5);
  const double after_one = std::nextafter(1.0, 2.0);
  for (int i = 0; i < 100; ++i) CHECK(rng.uniform(1, after_one) == 1);
  for (int i = 0; i < 100; ++i) {
    const double x = rng.uniform(-3, -2.5);
    CHECK((x >= -3 && x < -2.5));
  }
}

TEST_CASE("normal numbers: Box–Muller to rounding, moments, chi-square") {
  constexpr int n = 400000, bins = 64;
  std::vector<double> counts(bins), expected(bins);
  const auto below = [](double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); };
  const double width = 8.0 / bins;
  for (int i = 0; i < bins; ++i)
    expected[i] = n * ((i == bins - 1 ? 1 : below(-4 + width * (i + 1))) - (i == 0 ? 0 : below(-4 + width * i)));
  double moments[5] = {}, worst = 0;
  Rng rng(12, "normal"), same(12, "normal");
  for (int i = 0; i < n; ++i) {
    const double x = rng.normal(), u = same.uniform(), v = same.uniform();
    const double reference = std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v);
    worst = std::max(worst, std::abs(x - reference));
    counts[std::clamp(int(std::floor((x + 4) / width)), 0, bins - 1)] += 1;
    for (int k = 1; k < 5; ++k) moments[k] += std::pow(x, k) / n;
  }
  CHECK(worst < 5e-15);
  CHECK(std::abs(moments[1]) < 5 / std::sqrt(n));
  CHECK(std::abs(moments[2] - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(std::abs(moments[3]) < 5 * std::sqrt(15.0 / n));
  CHECK(std::abs(moments[4] - 3) < 5 * std::sqrt(96.0 / n));
  CHECK(std::abs(chi_square_deviation(counts, expected)) < 5);
}

TEST_CASE("integers: bounds, no bias, the widest range") {
  Rng rng(13, "integer");
  std::vector<double> counts(7);
  for (int i = 0; i < 70000; ++i) counts.at(std::size_t(rng.integer(-3, 4) + 3)) += 1;
  CHECK(std::abs(chi_square_deviation(counts, 10000)) < 5);
  CHECK(rng.integer(5, 6) == 5);
  constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  int negative = 0;
  for (int i = 0; i < 1000; ++i) negative += rng.integer(least, most) < 0;
  CHECK(std::abs(negative - 500) < 80);
  // 3·2⁶² values: 2⁶⁴ numbers taken modulo the range would give the first third of them half of the time.
  int third = 0;
  for (int i = 0; i < 3000; ++i) third += rng.integer(least, std::int64_t(1) << 62) < least / 2;
  CHECK(std::abs(third - 1000) < 130);
  CHECK_THROWS_AS(rng.integer(4, 4), Error);
}

TEST_CASE("permutations: every order equally often") {
  Rng rng(14, "permutation");
  std::vector<double> counts(24);
  for (int i = 0; i < 24000; ++i) {
    const auto p = rng.permutation(4);
    std::size_t code = 0;
    for (std::size_t a = 0; a < 4; ++a) {
      std::size_t smaller = 0;
      for (std::size_t b = a + 1; b < 4; ++b) smaller += p[b] < p[a];
      code = code * (4 - a) + smaller;
    }
    counts[code] += 1;
  }
  CHECK(std::abs(chi_square_deviation(counts, 1000)) < 5);
  for (const std::int64_t n : {0, 1, 2, 100}) {
    auto p = rng.permutation(n);
    REQUIRE(std::int64_t(p.size()) == n);
    std::sort(p.begin(), p.end());
    for (std::int64_t i = 0; i < n; ++i) CHECK(p[i] == i);
  }
}

TEST_CASE("NumPy's RandomState") {
  const auto digest = [](std::uint32_t seed) {
    return sha256(fmt::format("{}", fmt::join(NumpyRandomState(seed).permutation(784), ",")));
  };
  CHECK(digest(92916) == "b5c4665c0096a8f46ca2065aaeb8c1d9479ab73a0cf1f1b2bf6522ceb9d52323");
  CHECK(digest(1) == "d842ea782a7a5a6bbdf744d57db8dfe521b72d3fb4277d7336d3034339a77977");
  CHECK(digest(1234) == "6aed8f13d3e3defbdca739b718257b43787cc127480b46e71a5e22852be2d734");
  const auto order = NumpyRandomState(92916).permutation(784);
  CHECK(std::vector(order.begin(), order.begin() + 5) == std::vector<std::int64_t>{319, 576, 323, 107, 355});
  CHECK(std::vector(order.end() - 5, order.end()) == std::vector<std::int64_t>{470, 264, 102, 39, 346});
  NumpyRandomState twice(5544);
  CHECK(twice.permutation(10) == std::vector<std::int64_t>{4, 5, 9, 8, 6, 1, 2, 0, 3, 7});
  CHECK(twice.permutation(10) == std::vector<std::int64_t>{0, 7, 1, 2, 4, 8, 9, 3, 5, 6});
}
