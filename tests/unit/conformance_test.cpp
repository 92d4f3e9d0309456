// The conformance kit: faults are named with block, entry and seed; the pieces that it is made of.
#include <doctest/doctest.h>
#include <cmath>

#include "conformance/check.hpp"
#include "conformance/directions.hpp"
#include "host/memory_archive.hpp"

using namespace stiefel;
using namespace stiefel::conformance;

namespace {

CheckReport check(const std::string& name, CheckSettings settings = {}) {
  static const Registry registry({STIEFEL_FIXTURES});
  settings.seed = 1;
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
  CHECK(line->worst[0].block == "W");
  CHECK(line->worst[0].got != line->worst[0].expected);
  CHECK(line->at.seed == 1);
  CHECK(report.text("stiefel check x.so").find("again: stiefel check x.so --scalar float64 --seed 1") !=
        std::string::npos);
  CHECK_FALSE(failed(report, "adjoint"));
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
  CHECK(c.worst()[0].index == 9);
  CHECK(c.worst()[4].index == 5);
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

TEST_CASE("extrapolated differences reach ten digits") {
  CHECK(derivative([](double t) { return std::exp(3 * t); }, 0.1) == doctest::Approx(3).epsilon(1e-11));
  CHECK(derivative([](double t) { return std::sin(1 + t); }, 0.1) == doctest::Approx(std::cos(1.)).epsilon(1e-11));
  CHECK(derivative([](double) { return 2.; }, 0.1) == 0);
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
    CHECK(slope(all[d.block], gradient, blocks[b], d) == doctest::Approx(derivative(f, 0.1)).epsilon(1e-9));
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
