// Random streams: block k of stream (seed, name, index) is Philox4x32-10 of counter (k, index) and key hash(seed,
// name).
//
// Distributions use +, −, ×, ÷ and √ on doubles only, all of which IEEE 754 rounds in one way: no library's log or cos
// takes part.
#include <stiefel/random.hpp>

#include <Random123/philox.h>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "sdk/require.hpp"

namespace stiefel {
namespace {

// A bijection of 64 bits in which every bit of x reaches every bit of the result (finaliser of SplitMix64, Steele et
// al. 2014).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

template <std::size_t N> double polynomial(const double (&coefficients)[N], double x) {
  double sum = coefficients[N - 1];
  for (std::size_t k = N - 1; k-- > 0;) sum = sum * x + coefficients[k];
  return sum;
}

// ln x = e ln 2 + 2 artanh s with x = m 2^e, m in [√½, √2), s = (m − 1)/(m + 1).
double natural_logarithm(double x) {
  static constexpr double artanh[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                      1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  return exponent * std::numbers::ln2 + 2 * s * polynomial(artanh, s * s);
}

// cos 2πu for 0 ≤ u < 1, from the series of cos and sin within an eighth of a turn of the nearest quarter.
double cosine_of_turns(double u) {
  static constexpr double cosine[] = {1.0,
                                      -1.0 / 2,
                                      1.0 / 24,
                                      -1.0 / 720,
                                      1.0 / 40320,
                                      -1.0 / 3628800,
                                      1.0 / 479001600,
                                      -1.0 / 87178291200,
                                      1.0 / 20922789888000};
  static constexpr double sine[] = {1.0,
                                    -1.0 / 6,
                                    1.0 / 120,
                                    -1.0 / 5040,
                                    1.0 / 362880,
                                    -1.0 / 39916800,
                                    1.0 / 6227020800,
                                    -1.0 / 1307674368000,
                                    1.0 / 355687428096000};
  const int quarter = static_cast<int>(4 * u + 0.5);
  const double x = 2 * std::numbers::pi * (u - 0.25 * quarter);
  switch (quarter % 4) {
    case 0:
      return polynomial(cosine, x * x);
    case 1:
      return -x * polynomial(sine, x * x);
    case 2:
      return -polynomial(cosine, x * x);
    default:
      return x * polynomial(sine, x * x);
  }
}

}  // namespace

Rng::Rng(std::uint64_t seed, std::string_view stream, std::uint64_t index)
    : key_(mixed(mixed(seed) ^ mixed(hash_of(stream)))), index_(index), block_{} {}

void Rng::refill() {
  const auto half = [](std::uint64_t x, int i) { return static_cast<std::uint32_t>(x >> (32 * i)); };
  const std::uint64_t block = position_ / 4;
  const auto bits = r123::Philox4x32_R<10>()({{half(block, 0), half(block, 1), half(index_, 0), half(index_, 1)}},
                                             {{half(key_, 0), half(key_, 1)}});
  std::copy(bits.begin(), bits.end(), block_);
}

std::uint32_t Rng::bits32() {
  if (position_ % 4 == 0) refill();
  return block_[position_++ % 4];
}

std::uint64_t Rng::bits64() {
  const std::uint64_t low = bits32();
  return low | std::uint64_t(bits32()) << 32;
}

double Rng::uniform() { return static_cast<double>(bits64() >> 11) * 0x1p-53; }

double Rng::uniform(double low, double high) {
  require(low <= high, "there is no number from {} to below {}", low, high);
  const double x = low + (high - low) * uniform();
  return x < high ? x : std::nextafter(high, low);  // the sum may round up to high
}

// The cosine of each pair only: a call takes four numbers of 32 bits, whatever came before.
double Rng::normal() {
  const double radius = std::sqrt(-2 * natural_logarithm(1 - uniform()));
  return radius * cosine_of_turns(uniform());
}

std::int64_t Rng::integer(std::int64_t low, std::int64_t high) {
  require(low < high, "there is no integer from {} to below {}", low, high);
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const std::uint64_t surplus =
      (0 - range) % range;  // 2⁶⁴ mod range: this many values are rejected, the others are divided evenly
  std::uint64_t bits = bits64();
  while (bits < surplus) bits = bits64();
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + bits % range);
}

std::vector<std::int64_t> Rng::permutation(std::int64_t n) {
  std::vector<std::int64_t> p(static_cast<std::size_t>(n));
  std::iota(p.begin(), p.end(), 0);
  for (std::int64_t i = n - 1; i > 0; --i) std::swap(p[i], p[integer(0, i + 1)]);
  return p;
}

}  // namespace stiefel
