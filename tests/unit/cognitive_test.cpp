// The cognitive tasks: what an ideal observer of the inputs reaches, the steps that are scored, and the metric.
#include "task_plugins.hpp"

#include <fmt/format.h>
#include <cmath>

#include "host/metric_values.hpp"

using namespace stiefel;
using namespace task_plugins;

namespace {

constexpr Index trials = 10000;

std::unique_ptr<Task<double>> made(const std::string& options) {
  return make<double>("cognitive", options, {.seed = 1, .batch = trials, .data_directory = ""});
}

/// The sum of input `row` over the steps first … end − 1.
double sum_of(Batch<double>& batch, Index b, Index row, Index first, Index end) {
  double sum = 0;
  for (Index t = first; t < end; ++t) sum += batch.input(t, b)[std::size_t(row)];
  return sum;
}

/// The last pulse of each channel so far.
Matrix<double> last_pulses(const Matrix<double>& x) {
  Matrix<double> y = x;
  for (Index t = 1; t < y.cols(); ++t)
    for (Index i = 0; i < y.rows(); ++i)
      if (y(i, t) == 0) y(i, t) = y(i, t - 1);
  return y;
}

}  // namespace

TEST_CASE("flip-flop") {
  // From a NumPy program of its own.
  Matrix<double> x(3, 8), y(3, 8);
  x << 1, 0, 0, -1, -1, -1, -1, 1, 1, -1, -1, 0, 0, -1, 1, 1, -1, 1, 0, 0, -1, 1, 0, 0;
  y << 1, 1, 1, -1, -1, -1, -1, 1, 1, -1, -1, -1, -1, -1, 1, 1, -1, 1, 1, 1, -1, 1, 1, 1;
  CHECK(last_pulses(x) == y);

  const auto task = made("{length: 20, pulses: 0.3}");
  Batch<double> batch = batch_of(*task, Split::train, 0);
  double pulses = 0, positive = 0;
  for (Index b = 0; b < 500; ++b) {
    Matrix<double> in(3, 20), out(3, 20);
    for (Index t = 0; t < 20; ++t)
      for (Index i = 0; i < 3; ++i) {
        in(i, t) = batch.input(t, b)[std::size_t(i)];
        out(i, t) = batch.target(t, b)[std::size_t(i)];
      }
    REQUIRE(out == last_pulses(in));
    CHECK(in.col(0).cwiseAbs().sum() == 3);
    pulses += in.rightCols(19).cwiseAbs().sum();
    positive += (in.array() == 1).count();
  }
  CHECK(pulses / (500 * 57) == doctest::Approx(0.3).epsilon(0.04));
  CHECK(positive / (pulses + 1500) == doctest::Approx(0.5).epsilon(0.04));
  CHECK(task->baseline() == 1);
}

TEST_CASE("perceptual decision: an ideal observer") {
  const auto share_right = [](const std::string& options) {
    Batch<double> batch = batch_of(*made("{kind: perceptual_decision" + options + "}"), Split::train, 0);
    Index right = 0;
    for (Index b = 0; b < trials; ++b) {
      REQUIRE(batch.length(b) == 22);
      for (Index t = 0; t < 21; ++t) REQUIRE(batch.label(t, b) == 0);
      CHECK(sum_of(batch, b, 0, 0, 22) == 21);
      const double evidence = sum_of(batch, b, 1, 1, 21) - sum_of(batch, b, 2, 1, 21);
      right += batch.label(21, b) == (evidence > 0 ? 1 : 2);
    }
    return double(right) / double(trials);
  };
  CHECK(share_right("") == doctest::Approx(0.8957).epsilon(0.011));                     // (0.5 + 0.9785 + 3)/5
  CHECK(share_right(", coherences: [6.4]") == doctest::Approx(0.9785).epsilon(0.005));  // Φ(0.064 √20 / 0.141)
  CHECK(share_right(", coherences: [6.4], noise: 0") == 1);
  CHECK(share_right(", coherences: [0]") == doctest::Approx(0.5).epsilon(0.03));
}

TEST_CASE("delayed match: an ideal observer") {
  Batch<double> batch = batch_of(*made("{kind: delayed_match}"), Split::train, 0);
  Index right = 0, matches = 0;
  for (Index b = 0; b < trials; ++b) {
    REQUIRE(batch.length(b) == 32);
    for (Index t = 8; t < 18; ++t) REQUIRE((batch.input(t, b)[1] == 0 && batch.input(t, b)[2] == 0));
    for (Index t = 0; t < 23; ++t) REQUIRE((batch.label(t, b) == 0 && batch.input(t, b)[0] == 1));
    for (Index t = 23; t < 32; ++t) REQUIRE((batch.label(t, b) == batch.label(31, b) && batch.input(t, b)[0] == 0));
    const auto second = [&](Index first) {
      return sum_of(batch, b, 2, first, first + 5) > sum_of(batch, b, 1, first, first + 5);
    };
    matches += batch.label(31, b) == 1;
    right += batch.label(31, b) == (second(3) == second(18) ? 1 : 2);
  }
  CHECK(right == trials);
  CHECK(double(matches) / trials == doctest::Approx(0.5).epsilon(0.03));
}

TEST_CASE("context: only the modality with the cue counts") {
  const auto task = made("{kind: context}");
  CHECK(task->shape().steps == 41);
  Batch<double> batch = batch_of(*task, Split::train, 0);
  Index right = 0, other = 0, longest = 0, shortest = 100;
  double delays = 0;
  for (Index b = 0; b < trials; ++b) {
    const Index length = batch.length(b), delay = length - 11;
    longest = std::max(longest, delay), shortest = std::min(shortest, delay), delays += double(delay);
    const Index cue = batch.input(0, b)[5] == 1 ? 0 : 1;
    CHECK(sum_of(batch, b, 0, 0, length) == double(length - 1));
    CHECK(sum_of(batch, b, 5 + cue, 0, length) == double(length - 1));
    CHECK(batch.input(length - 1, b)[std::size_t(5 + cue)] == 0);
    CHECK(sum_of(batch, b, 6 - cue, 0, length) == 0);
    CHECK(sum_of(batch, b, 1, 10, length) == 0);
    for (Index t = 0; t < length - 1; ++t) REQUIRE(batch.label(t, b) == 0);
    const auto answer = [&](Index modality) {
      return sum_of(batch, b, 1 + 2 * modality, 3, 10) > sum_of(batch, b, 2 + 2 * modality, 3, 10) ? 1 : 2;
    };
    right += batch.label(length - 1, b) == answer(cue);
    other += batch.label(length - 1, b) == answer(1 - cue);
  }
  CHECK(shortest == 3);
  CHECK(longest <= 29);
  CHECK(longest > 24);
  // The mean of an exponential of mean 600 cut to 300 … 3000 , rounded down to steps.
  CHECK(delays / trials == doctest::Approx(8.2).epsilon(0.02));
  // A mean of Φ(c/100 √7 / 0.141) over 5, 15 and 50.
  CHECK(double(right) / trials == doctest::Approx(0.941).epsilon(0.01));
  CHECK(double(other) / trials == doctest::Approx(0.5).epsilon(0.03));
}

TEST_CASE("weights of the response, and accuracy in it alone") {
  const auto task = made("{kind: delayed_match, response_weight: 5, mask_first: true}");
  Batch<double> batch = batch_of(*task, Split::train, 0);
  for (Index t = 0; t < 32; ++t) CHECK(batch.weight(t, 0) == (t < 23 ? 1 : t == 23 ? 0 : 5));
  CHECK(task->baseline() == doctest::Approx(8 * 5 * std::log(2) / (23 + 8 * 5)));

  const std::vector<std::int32_t> labels{0, 1, 2, 2};
  const std::vector<double> weights{1, 5, 5, 0};
  Matrix<double> output = Matrix<double>::Zero(3, 4);
  output.row(1).setOnes();
  std::vector<Ratio> ratios(1);
  task->measure(output, Targets<double>{CMat<double>(), labels, weights}, ratios);
  CHECK(ratios[0].sum == 5);
  CHECK(ratios[0].weight == 10);

  Matrix<double> numbers(2, 2), targets(2, 2);
  numbers << 0.1, -2, 0.5, 3;
  targets << 1, 1, 1, 1;
  ratios = {{}};
  made("{bits: 2}")->measure(numbers, Targets<double>{targets, {}, std::vector<double>{1, 1}}, ratios);
  CHECK(ratios[0].sum == 3);
  CHECK(ratios[0].weight == 4);
  CHECK_THROWS_WITH_AS(made("{kind: context, mask_first: true}"), doctest::Contains("leaves no step"), Error);
}
