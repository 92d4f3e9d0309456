// vector_exp, vector_sigmoid, vector_tanh against long double on every SIMD target; DenormalsOff.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <stiefel/denormals.hpp>
#include <stiefel/error.hpp>
#include <stiefel/product.hpp>
#include <stiefel/random.hpp>
#include <stiefel/vector_math.hpp>

using namespace stiefel;

namespace {

template <class S> struct Function {
  const char* name;
  void (*vector)(std::span<const S>, std::span<S>);
  long double (*exact)(long double);
  double ulp;  // as promised in vector_math.hpp
};

template <class S> std::vector<Function<S>> functions() {
  return {{"exp", vector_exp<S>, [](long double x) { return std::exp(x); }, 2},
          {"sigmoid", vector_sigmoid<S>, [](long double x) { return 1 / (1 + std::exp(-x)); }, 3},
          {"tanh", vector_tanh<S>, [](long double x) { return std::tanh(x); }, 4}};
}

template <class S, class Body> void for_each_target_and_function(Body body) {
  for (const char* name : product_targets()) {
    REQUIRE(select_product_target(name));
    CAPTURE(std::string(name));
    for (const Function<S>& function : functions<S>()) {
      CAPTURE(std::string(function.name));
      body(function);
    }
  }
  REQUIRE(select_product_target(""));
}

template <class S> S value(const Function<S>& function, S x) {
  S y = 42;
  function.vector({&x, 1}, {&y, 1});
  return y;
}

/// |y − exact| in units of the last place of `exact` rounded to S.
template <class S> double ulps(S y, long double exact) {
  using Limits = std::numeric_limits<S>;
  const S rounded = static_cast<S>(exact);
  if (y == rounded) return 0;
  if (!std::isfinite(rounded) || !std::isfinite(y)) return 1e30;
  int exponent;
  std::frexp(std::max(std::abs(rounded), Limits::min()), &exponent);
  return double(std::abs(y - exact) / std::ldexp(1.0L, exponent - Limits::digits));
}

/// All scales, with more numbers where the functions bend, change sign, overflow and underflow.
template <class S> std::vector<S> arguments() {
  Rng rng(1, "arguments");
  std::vector<S> x;
  for (const double scale : {0.01, 0.3, 1.0, 4.0, 20.0, 88.8, 104.5, 711.0, 746.0})
    for (int i = 0; i < 10000; ++i) x.push_back(S(rng.uniform(-scale, scale)));
  using Limits = std::numeric_limits<S>;
  for (int exponent = Limits::min_exponent - Limits::digits; exponent <= Limits::max_exponent; ++exponent)
    for (int i = 0; i < 8; ++i) x.push_back(std::ldexp(S(rng.uniform(-1, 1)), exponent));
  return x;
}

}  // namespace

TEST_CASE_TEMPLATE("errors stay within the promised units in the last place", S, float, double) {
  const std::vector<S> x = arguments<S>();
  for_each_target_and_function<S>([&](const Function<S>& function) {
    std::vector<S> y(x.size());
    function.vector(x, y);
    double worst = 0;
    S at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(y[i], function.exact(x[i]));
      if (error > worst) worst = error, at = x[i];
    }
    CAPTURE(at);
    CHECK(worst <= function.ulp);
  });
}

TEST_CASE_TEMPLATE("limits, zeros and NaN", S, float, double) {
  using Limits = std::numeric_limits<S>;
  const S infinity = Limits::infinity();
  for_each_target_and_function<S>([&](const Function<S>& function) {
    const bool exp = function.name == std::string("exp"), tanh = function.name == std::string("tanh");
    for (const S huge : {infinity, Limits::max(), S(1e5)}) {
      CHECK(value(function, huge) == (exp ? infinity : S(1)));
      CHECK(value(function, -huge) == (tanh ? S(-1) : S(0)));
    }
    CHECK(value(function, S(0)) == (tanh ? S(0) : exp ? S(1) : S(0.5)));
    if (tanh) CHECK(std::signbit(value(function, S(-0.0))));
    CHECK(std::isnan(value(function, Limits::quiet_NaN())));
    CHECK(std::isnan(value(function, -Limits::quiet_NaN())));
    const S least = Limits::denorm_min();
    CHECK(value(function, least) == (tanh ? least : exp ? S(1) : S(0.5)));
  });
}

TEST_CASE_TEMPLATE("a result depends neither on its place nor on the length, and may overwrite its argument", S, float,
                   double) {
  Rng rng(2, "places");
  std::vector<S> x(70);
  for (S& number : x) number = S(rng.uniform(-30, 30));
  for_each_target_and_function<S>([&](const Function<S>& function) {
    std::vector<S> alone(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) alone[i] = value(function, x[i]);
    for (std::size_t first = 0; first < 9; ++first) {
      for (std::size_t size = 0; size + first <= x.size(); ++size) {
        std::vector<S> y = x;
        const std::span<S> part = std::span(y).subspan(first, size);
        function.vector(part, part);
        std::vector<S> expected = x;
        std::copy_n(alone.begin() + Index(first), size, expected.begin() + Index(first));
        REQUIRE(std::memcmp(y.data(), expected.data(), y.size() * sizeof(S)) == 0);
      }
    }
  });
}

TEST_CASE_TEMPLATE("tanh is odd to the bit and the sigmoid's tails keep their accuracy", S, float, double) {
  for_each_target_and_function<S>([&](const Function<S>& function) {
    for (S x = S(1e-6); x < 50; x *= S(1.37)) {
      if (function.name == std::string("tanh")) CHECK(value(function, -x) == -value(function, x));
      if (function.name == std::string("sigmoid")) CHECK(ulps(value(function, -x), function.exact(-x)) <= function.ulp);
    }
  });
}

TEST_CASE("lengths that differ are refused") {
  const std::vector<float> x(3);
  std::vector<float> y(4);
  CHECK_THROWS_AS(vector_tanh<float>(x, y), Error);
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST_CASE_TEMPLATE("DenormalsOff counts subnormal numbers as zero on its own thread until it ends", S, float, double) {
  using Limits = std::numeric_limits<S>;
  volatile S smallest = Limits::min(), subnormal = Limits::denorm_min(), half = S(0.5), large = S(1) / Limits::min();
  const auto halved = [&]() -> S { return smallest * half; };
  const auto enlarged = [&]() -> S { return subnormal * large; };
  CHECK(std::fpclassify(halved()) == FP_SUBNORMAL);
  CHECK(enlarged() > 0);
  {
    const DenormalsOff outer;
    {
      const DenormalsOff inner;
      CHECK(std::fpclassify(halved()) == FP_ZERO);
    }
    CHECK(std::fpclassify(halved()) == FP_ZERO);
    CHECK(std::fpclassify(enlarged()) == FP_ZERO);
    int elsewhere = 0;
    std::thread([&] {
      const DenormalsOff own;
      elsewhere = std::fpclassify(halved());
    }).join();
    CHECK(elsewhere == FP_ZERO);
    CHECK(std::fpclassify(halved()) == FP_ZERO);
  }
  CHECK(std::fpclassify(halved()) == FP_SUBNORMAL);
  CHECK(enlarged() > 0);
  int outside = 0;
  std::thread([&] { outside = std::fpclassify(halved()); }).join();
  CHECK(outside == FP_SUBNORMAL);
}
#endif
