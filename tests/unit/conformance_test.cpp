// The conformance kit: faults are named with block, entry and seed; the pieces that it is made of.
#include <doctest/doctest.h>
#include <cmath>

#include "conformance/check.hpp"
#include "conformance/difference.hpp"
#include "conformance/directions.hpp"
#include "host/memory_archive.hpp"

using namespace stiefel;
using namespace stiefel::conformance;

namespace {

CheckReport check(const std::string& name, std::vector<std::uint64_t> seeds = {1}) {
  static const Registry registry({STIEFEL_FIXTURES});
  CheckSettings settings;
  settings.seeds = std::move(seeds);
  Progress progress;
  return check_method(registry, registry.find(Role::parametrisation, name), settings, progress);
}

const Line* failed(const CheckReport& report, const std::string& check) {
  for (const Line& line : report.lines())
    if (line.check == check && line.state == Line::failed) return &line;
  return nullptr;
}

}  // namespace

TEST_CASE("a wrong gradient is named with its worst entries") {
  const CheckReport report = check("hostile_gradient");
  const Line* line = failed(report, "gradient");
  REQUIRE(line);
  REQUIRE_FALSE(line->worst.empty());
  CHECK(line->worst[0].block == "recurrent.W");
  CHECK(line->worst[0].got != line->worst[0].expected);
  CHECK(line->at.seed == 1);
  CHECK(report.text("stiefel check x.so").find("again: stiefel check x.so --shape 1x1 --scalar float64 --seed 1") !=
        std::string::npos);
  CHECK_FALSE(failed(report, "adjoint"));
}

TEST_CASE("the worst of several seeds is reported") {
  const Line* alone[] = {nullptr, nullptr};
  const CheckReport three = check("hostile_gradient", {3}), seven = check("hostile_gradient", {7}),
                    both = check("hostile_gradient", {3, 7});
  alone[0] = failed(three, "gradient");
  alone[1] = failed(seven, "gradient");
  const Line* line = failed(both, "gradient");
  REQUIRE((line && alone[0] && alone[1]));
  const Line* worse = alone[0]->figure / alone[0]->bound > alone[1]->figure / alone[1]->bound ? alone[0] : alone[1];
  CHECK(line->at.seed == worse->at.seed);
  CHECK(line->figure == worse->figure);
}

TEST_CASE("NaN, a false claim and exceptions are named") {
  CHECK(failed(check("hostile_nan"), "finite"));
  const CheckReport claim = check("hostile_claim");
  REQUIRE(failed(claim, "claim"));
  CHECK_FALSE(failed(claim, "claim")->worst.empty());
  CHECK_FALSE(failed(claim, "gradient"));
  const CheckReport create = check("hostile_throw_create");
  REQUIRE(failed(create, "shapes"));
  CHECK(failed(create, "shapes")->note.find("in create() of hostile_throw_create") != std::string::npos);
  const CheckReport thrown = check("hostile_throw_int");
  CHECK(thrown.text("").find("an exception of type int was thrown in apply() of hostile_throw_int") !=
        std::string::npos);
}

TEST_CASE("a comparison keeps the worst entries, NaN first") {
  Comparison c;
  for (int i = 0; i < 10; ++i) c.add("a", i, i, 0);
  CHECK(c.largest() == 9);
  REQUIRE(c.worst().size() == 5);
  CHECK(c.worst()[0].place.index == 9);
  CHECK(c.worst()[4].place.index == 5);
  c.add("b", 3, std::nan(""), 1);
  CHECK(std::isinf(c.largest()));
  CHECK(c.worst()[0].block == "b");
}

TEST_CASE("a report keeps the worst case, and a failure stays one") {
  CheckReport report("m", "r", "f");
  report.at({"float64", "2 × 2", 1});
  report.measure("x", 0.5, 1);
  report.measure("x", 0.1, 1);
  CHECK(report.lines()[0].figure == 0.5);
  CHECK(report.passed());
  report.at({"float64", "3 × 3", 2});
  report.measure("x", std::nan(""), 1);
  report.measure("x", 0.2, 1);
  CHECK_FALSE(report.passed());
  CHECK(report.lines()[0].at.seed == 2);
}

TEST_CASE("a likely cause is named") {
  const auto cause = [](double factor) {
    Comparison c;
    for (int i = 1; i < 5; ++i) c.add("a", i, factor * i, i);
    return c.likely_cause();
  };
  CHECK(cause(-1).find("sign") != std::string::npos);
  CHECK(cause(2).find("factor of 2") != std::string::npos);
  CHECK(cause(0.3).find("0.3") != std::string::npos);
  CHECK(cause(0).find("every entry is 0") != std::string::npos);
  Comparison mixed;
  mixed.add("a", 0, 1, 1);
  mixed.add("a", 1, 3, 1);
  CHECK(mixed.likely_cause().empty());
}

TEST_CASE("extrapolated differences reach ten digits, and their error is known") {
  const auto near = [](const Quotient& q, double expected) {
    return q.error < 1e-9 && std::abs(q.value - expected) <= 10 * q.error + 1e-15;
  };
  CHECK(near(derivative([](double t) { return std::exp(3 * t); }, 0.1), 3));
  CHECK(near(derivative([](double t) { return std::sin(1 + t); }, 0.1), std::cos(1.)));
  CHECK(near(derivative([](double) { return 2.; }, 0.1), 0));
  CHECK(near(derivative([](double t) { return std::sin(1e4 * t); }, 0.1, 1e-6), 1e4) == false);
  CHECK(derivative([](double t) { return std::abs(t); }, 0.1).value == 0);  // the mean of both sides
}

namespace {

/// The report on one entry of a gradient.
Line judged(double got, const Differences::Function& f, double step = 0.1) {
  CheckReport report("m", "r", "f");
  GradientComparison comparison({.absolute = 1e-9});
  for (int i = 0; i < 20; ++i)
    comparison.add(
        "sound", i, 1, [](double t) { return t; }, step, 0);
  comparison.add("block", 0, got, f, step, 0);
  comparison.report(report, "gradient");
  return report.lines().at(0);
}

}  // namespace

TEST_CASE("a gradient next to a kink is compared with the side that is smooth") {
  for (const double kink : {1e-2, 1e-5, 1e-7, 1e-9, -1e-3, -1e-8}) {
    const auto f = [=](double t) { return 2 * t + 3 * std::max(0., t - kink); };
    const double expected = kink < 0 ? 5 : 2;
    INFO(kink);
    CHECK(judged(expected, f).state == Line::passed);
    CHECK(judged(expected + 1e-3, f).state == Line::failed);
    if (std::abs(kink) > 1e-7) CHECK(judged(7 - expected, f).state == Line::failed);
  }
  const auto at_zero = [](double t) { return std::max(0., t); };
  CHECK(judged(0, at_zero).state == Line::passed);
  CHECK(judged(1, at_zero).state == Line::passed);
  CHECK(judged(0.7, at_zero).state == Line::failed);
}

TEST_CASE("steps adapt to the scale of the function") {
  for (const double scale : {1e-6, 1e-3, 1., 1e3}) {
    const auto f = [=](double t) { return std::tanh((t + 0.4 * scale) / scale); };
    const double expected = (1 - std::pow(std::tanh(0.4), 2)) / scale;
    INFO(scale);
    CHECK(judged(expected, f).state == Line::passed);
    CHECK(judged(1.0001 * expected, f).state == Line::failed);
  }
}

TEST_CASE("entries without a derivative are dropped, counted, and fail when they are many") {
  int calls = 0;
  const auto noise = [&](double) { return std::sin(12345.678 * ++calls); };
  const Line line = judged(1, noise);
  CHECK(line.state == Line::failed);  // the only entry of its block
  CHECK(line.entries == 21);
  CHECK(line.dropped == 1);
  CHECK(line.note.find("1 of 1 entries of block `block`") != std::string::npos);

  CheckReport report("m", "r", "f");
  GradientComparison comparison({.absolute = 1e-9});
  for (int i = 0; i < 20; ++i)
    comparison.add(
        "block", i, 1, [](double t) { return t; }, 0.1, 0);
  comparison.add("block", 20, 1, noise, 0.1, 0);
  comparison.report(report, "gradient");
  CHECK(report.passed());
  CHECK(report.text("").find("1 of 21 entries dropped") != std::string::npos);
}

TEST_CASE("directions stay on their manifold and slopes are the derivatives along them") {
  const std::vector<BlockSpec> blocks = {
      {"f", 3}, {"o", 16, 4, 4, Manifold::orthogonal}, {"u", 18, 6, 3, Manifold::unitary}};
  const std::vector<Index> offsets = {0, 3, 19, 37};
  std::vector<double> theta(37), weights(37);
  Blocks<double> all(theta.data(), offsets.data(), 3);
  as_matrix(all[1], 4, 4).setIdentity();
  as_matrix(all[2], 6, 3).topRows(3).setIdentity();
  Rng rng(1);
  scatter(all, blocks, 0.4, rng);
  for (double& w : weights) w = rng.normal();
  const CMat<double> O = as_matrix(std::span<const double>(all[1]), 4, 4),
                     U = as_matrix(std::span<const double>(all[2]), 6, 3);
  CHECK((O.transpose() * O - Matrix<double>::Identity(4, 4)).norm() < 1e-14);
  CHECK((U.transpose() * U - Matrix<double>::Identity(3, 3)).norm() < 1e-14);  // the real part of UᴴU
  const auto directions = directions_of(blocks, 100, 1);
  CHECK(directions.size() == 3 + 6 + 9);
  for (const Direction& d : directions) {
    const std::size_t b = std::size_t(d.block);
    const auto f = [&](double t) {
      std::vector<double> moved = theta;
      const std::span<double> block(moved.data() + offsets[b], std::size_t(blocks[b].size));
      move(block, blocks[b], d, t);
      double sum = 0;
      for (std::size_t i = 0; i < moved.size(); ++i) sum += weights[i] * moved[i];
      return sum;
    };
    const std::span<const double> gradient(weights.data() + offsets[b], std::size_t(blocks[b].size));
    CHECK(slope(all[d.block], gradient, blocks[b], d) == doctest::Approx(derivative(f, 0.1).value).epsilon(1e-9));
  }
}

TEST_CASE("an archive in memory refuses what does not fit") {
  MemoryArchive saved;
  std::vector<double> x = {1, 2};
  saved.array("x", x);
  CHECK_THROWS_AS(saved.array("x", x), Error);
  CHECK_THROWS_AS(saved.array("Not this", x), Error);
  MemoryArchive load(saved.items());
  std::vector<double> longer(3);
  std::vector<float> other(2);
  CHECK_THROWS_AS(load.array("x", longer), Error);
  MemoryArchive again(saved.items());
  CHECK_THROWS_AS(again.array("x", other), Error);
  CHECK_THROWS_AS(again.array("y", longer), Error);
  MemoryArchive right(saved.items());
  std::vector<double> y(2);
  right.array("x", y);
  CHECK(y == x);
  CHECK(right.unread().empty());
}
