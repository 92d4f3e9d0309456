// Resampling by a windowed sinc.
#include "tasks/signal/resample.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>

#include <stiefel/error.hpp>

namespace stiefel {
namespace {

/// h[i], i = −L … L.
std::vector<double> filter(std::int64_t p, std::int64_t q) {
  constexpr double beta = 5;
  const std::int64_t longest = std::max(p, q), half = 10 * longest;
  std::vector<double> h(std::size_t(2 * half + 1));
  for (std::int64_t i = -half; i <= half; ++i) {
    const double angle = std::numbers::pi * double(i) / double(longest), place = double(i) / double(half);
    h[std::size_t(i + half)] =
        (i == 0 ? 1 : std::sin(angle) / angle) * std::cyl_bessel_i(0., beta * std::sqrt(1 - place * place));
  }
  const double scale = double(p) / std::accumulate(h.begin(), h.end(), 0.);
  for (double& value : h) value *= scale;
  return h;
}

}  // namespace

std::vector<double> resample(std::span<const double> x, int up, int down) {
  STIEFEL_ASSERT(up > 0 && down > 0);
  const std::int64_t common = std::gcd(up, down), p = up / common, q = down / common;
  if (p == q) return {x.begin(), x.end()};
  const std::vector<double> h = filter(p, q);
  const auto half = std::int64_t(h.size() / 2), size = std::int64_t(x.size());
  std::vector<double> y(std::size_t((size * p + q - 1) / q));
  for (std::int64_t m = 0; m < std::int64_t(y.size()); ++m) {
    // all n with |m q − n p| ≤ L
    const std::int64_t low = m * q - half, first = low > 0 ? (low + p - 1) / p : 0,
                       last = std::min((m * q + half) / p, size - 1);
    double sum = 0;
    for (std::int64_t n = first; n <= last; ++n) sum += x[std::size_t(n)] * h[std::size_t(m * q - n * p + half)];
    y[std::size_t(m)] = sum;
  }
  return y;
}

}  // namespace stiefel
