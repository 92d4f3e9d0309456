// The transform of any length against its definition, and the inverse against the input.
#include "parametrisations/fourier.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <complex>
#include <numbers>

#include <stiefel/random.hpp>

using namespace stiefel;

namespace {

/// The largest errors of the transform and of the inverse, relative to the largest number.
template <class S> std::pair<double, double> errors(Index n) {
  std::vector<S> x(std::size_t(2 * n)), y(x.size()), back(x.size());
  Rng rng(std::uint64_t(n), "fourier");
  for (S& number : x) number = S(rng.uniform(-1, 1));
  const Fourier<S> fourier(n);
  std::vector<S> work(std::size_t(fourier.scratch()));
  fourier.forward(x.data(), y.data(), work.data());
  fourier.inverse(y.data(), back.data(), work.data());
  double largest = 0, forward = 0, inverse = 0;
  for (Index j = 0; j < n; ++j) {
    std::complex<double> sum = 0;
    for (Index k = 0; k < n; ++k)
      sum += std::complex<double>(x[std::size_t(k)], x[std::size_t(n + k)]) *
             std::polar(1.0, -2 * std::numbers::pi * double(j * k % n) / double(n));
    largest = std::max(largest, std::abs(sum));
    forward = std::max(forward, std::abs(sum - std::complex<double>(y[std::size_t(j)], y[std::size_t(n + j)])));
  }
  for (std::size_t i = 0; i < x.size(); ++i) inverse = std::max(inverse, std::abs(double(back[i]) / double(n) - x[i]));
  return {forward / largest, inverse};
}

}  // namespace

TEST_CASE("transforms of every length, of powers of two and of primes") {
  std::vector<Index> lengths{97, 100, 116, 125, 128, 170, 256, 509, 512, 1024};
  for (Index n = 1; n <= 64; ++n) lengths.push_back(n);
  for (const Index n : lengths) {
    CAPTURE(n);
    const auto [forward, inverse] = errors<double>(n);
    CHECK(forward < 1e-14);
    CHECK(inverse < 1e-14);
    const auto [forward_f, inverse_f] = errors<float>(n);
    CHECK(forward_f < 5e-6);
    CHECK(inverse_f < 5e-6);
  }
}
