// How the rate changes over steps.
#include <doctest/doctest.h>

#include <cmath>

#include "host/memory_archive.hpp"
#include "training/updater.hpp"

using namespace stiefel;

TEST_CASE("schedules") {
  Schedule constant({"constant", 0.5, 10, 0}, 50), step({"step", 0.5, 10, 0}, 50), plateau({"plateau", 0.3, 1, 1}, 50);
  CHECK(constant.factor(1000) == 1);
  CHECK(step.factor(10) == 1);
  CHECK(step.factor(11) == 0.5);
  CHECK(step.factor(31) == 0.125);
  plateau.evaluated(1, false);
  CHECK(plateau.factor(1) == 1);
  plateau.evaluated(1, false);
  CHECK(plateau.factor(1) == doctest::Approx(0.3));
  MemoryArchive archive;
  plateau.serialise(archive);
  MemoryArchive back(archive.items());
  constant.serialise(back);
  CHECK(constant.factor(1) == 1);
  plateau.evaluated(1, true);
  plateau.evaluated(1, false);
  CHECK(plateau.factor(1) == doctest::Approx(0.3));
}

TEST_CASE("schedules by their formulas: exponential, cosine, one cycle") {
  const Schedule exponential({.kind = "exponential", .factor = 0.25, .every = 10}, 100);
  CHECK(exponential.factor(1) == 1);
  CHECK(exponential.factor(6) == doctest::Approx(0.5).epsilon(1e-15));
  CHECK(exponential.factor(11) == 0.25);
  CHECK(exponential.factor(26) == doctest::Approx(1.0 / 32).epsilon(1e-15));

  const Schedule cosine({.kind = "cosine", .last_fraction = 0.1}, 12);
  CHECK(cosine.factor(1) == 1);
  CHECK(cosine.factor(4) == doctest::Approx(0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2).epsilon(1e-15));
  CHECK(cosine.factor(5) == doctest::Approx(0.1 + 0.9 * 0.75).epsilon(1e-15));
  CHECK(cosine.factor(7) == doctest::Approx(0.55).epsilon(1e-15));
  CHECK(cosine.factor(9) == doctest::Approx(0.1 + 0.9 * 0.25).epsilon(1e-15));
  CHECK(cosine.factor(13) == doctest::Approx(0.1).epsilon(1e-15));
  CHECK(cosine.factor(20) == cosine.factor(13));

  const Schedule cycle({.kind = "one_cycle", .last_fraction = 0.01, .start = 0.2, .rise = 0.4}, 100);
  const std::vector<std::pair<Index, double>> points = {{1, 0.2},  {21, 0.6},   {41, 1},    {51, 0.8},
                                                        {81, 0.2}, {91, 0.105}, {101, 0.01}};
  for (const auto& [at, factor] : points) CHECK(cycle.factor(at) == doctest::Approx(factor).epsilon(1e-14));
  const Schedule triangle({.kind = "one_cycle", .start = 0.2, .rise = 0.5}, 10);
  CHECK(triangle.factor(6) == 1);
  CHECK(triangle.factor(10) == doctest::Approx(0.2 + 0.8 / 5).epsilon(1e-15));
  CHECK(triangle.factor(11) == 0.2);
}

TEST_CASE("schedules: a warmup rises linearly to the rate, then every schedule is as without it") {
  for (const char* kind : {"constant", "step", "exponential", "cosine"}) {
    CAPTURE(kind);
    const ScheduleOptions options{.kind = kind, .factor = 0.5, .every = 3, .last_fraction = 0.1};
    ScheduleOptions warm = options;
    warm.warmup = 8;
    const Schedule with(warm, 28), without(options, 20);
    for (Index k = 1; k <= 8; ++k) CHECK(with.factor(k) == double(k) / 8);
    for (Index k = 1; k <= 20; ++k) CHECK(with.factor(8 + k) == without.factor(k));
  }
  Schedule plateau({.kind = "plateau", .factor = 0.5, .patience = 0, .warmup = 4}, 20);
  plateau.evaluated(3, false);
  CHECK(plateau.factor(2) == 0.5);
  CHECK(plateau.factor(9) == 1);
  plateau.evaluated(4, false);
  CHECK(plateau.factor(9) == 0.5);
}
