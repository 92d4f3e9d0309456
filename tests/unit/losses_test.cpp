// Losses against their formulas and, for the gradients, against central differences.
#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <stiefel/error.hpp>
#include <stiefel/losses.hpp>
#include <stiefel/random.hpp>

using namespace stiefel;

namespace {

constexpr Index rows = 5, columns = 7;

template <class S> using Loss = double (*)(CMat<S>, const Targets<S>&, Mat<S>);
template <class S> Mat<S> nothing() { return mat<S>(nullptr, 0, 0, 0); }

/// Outputs in a panel with rows to spare, targets of both kinds, weights of which one is 0.
template <class S> struct Problem {
  Matrix<S> panel = Matrix<S>::Zero(rows + 2, columns), values = Matrix<S>::Zero(rows, columns);
  std::vector<std::int32_t> labels;
  std::vector<S> weights;

  explicit Problem(std::uint64_t seed, double size = 2) {
    Rng rng(seed, "losses");
    for (Index c = 0; c < columns; ++c) {
      for (Index r = 0; r < rows; ++r) {
        panel(r, c) = S(size * rng.normal());
        values(r, c) = S(rng.uniform());
      }
      labels.push_back(std::int32_t(rng.integer(0, rows)));
      weights.push_back(c == 3 ? S(0) : S(rng.uniform(0.5, 2)));
    }
  }
  CMat<S> output() const { return panel.topRows(rows); }
  Targets<S> targets() const { return {values, labels, weights}; }
};

/// Largest difference between gradient and central differences, and whether nothing outside the output was written.
double worst_gradient_error(Loss<double> loss, std::uint64_t seed) {
  Problem<double> p(seed);
  Matrix<double> d = Matrix<double>::Constant(rows + 2, columns, 77);
  loss(p.output(), p.targets(), view(d.topRows(rows)));
  CHECK((d.bottomRows(2).array() == 77).all());
  CHECK((d.topRows(rows).col(3).array() == 0).all());
  double worst = 0;
  constexpr double step = 1e-5;
  for (Index c = 0; c < columns; ++c)
    for (Index r = 0; r < rows; ++r) {
      const double here = p.panel(r, c);
      p.panel(r, c) = here + step;
      const double above = loss(p.output(), p.targets(), nothing<double>());
      p.panel(r, c) = here - step;
      const double below = loss(p.output(), p.targets(), nothing<double>());
      p.panel(r, c) = here;
      worst = std::max(worst, std::abs((above - below) / (2 * step) - d(r, c)));
    }
  return worst;
}

}  // namespace

TEST_CASE("gradients are the derivatives") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    CHECK(worst_gradient_error(&softmax_cross_entropy<double>, seed) < 1e-9);
    CHECK(worst_gradient_error(&mean_square<double>, seed) < 1e-9);
    CHECK(worst_gradient_error(&bernoulli<double>, seed) < 1e-9);
  }
}

TEST_CASE("values by the formulas") {
  const Problem<double> p(4);
  double cross_entropy = 0, square = 0, coins = 0;
  for (Index c = 0; c < columns; ++c) {
    const auto o = p.output().col(c).array();
    const auto y = p.values.col(c).array();
    const auto sigma = 1 / (1 + (-o).exp());
    cross_entropy += p.weights[c] * (std::log(o.exp().sum()) - o(p.labels[c]));
    square += p.weights[c] * (o - y).square().mean();
    coins -= p.weights[c] * (y * sigma.log() + (1 - y) * (1 - sigma).log()).sum();
  }
  CHECK(softmax_cross_entropy(p.output(), p.targets(), nothing<double>()) ==
        doctest::Approx(cross_entropy).epsilon(1e-13));
  CHECK(mean_square(p.output(), p.targets(), nothing<double>()) == doctest::Approx(square).epsilon(1e-13));
  CHECK(bernoulli(p.output(), p.targets(), nothing<double>()) == doctest::Approx(coins).epsilon(1e-13));
}

TEST_CASE("float agrees with double") {
  const Problem<double> p(5);
  Problem<float> q(5);
  Matrix<double> d(rows, columns);
  Matrix<float> e(rows, columns);
  const auto agree = [&](Loss<double> in_double, Loss<float> in_float) {
    const double expected = in_double(p.output(), p.targets(), view(d));
    CHECK(in_float(q.output(), q.targets(), view(e)) == doctest::Approx(expected).epsilon(1e-5));
    CHECK((e.cast<double>() - d).cwiseAbs().maxCoeff() < 1e-5);
  };
  agree(&softmax_cross_entropy<double>, &softmax_cross_entropy<float>);
  agree(&mean_square<double>, &mean_square<float>);
  agree(&bernoulli<double>, &bernoulli<float>);
}

TEST_CASE("huge logits neither overflow nor lose the small part") {
  Problem<float> p(6);
  p.panel.setZero();
  p.panel.row(0).setConstant(1000);
  p.panel.row(1).setConstant(-1000);
  std::fill(p.labels.begin(), p.labels.end(), 1);
  std::fill(p.weights.begin(), p.weights.end(), 1.0f);
  p.values.setConstant(0.25f);
  CHECK(softmax_cross_entropy(p.output(), p.targets(), nothing<float>()) == doctest::Approx(2000.0 * columns));
  const double each = 0.75 * 1000 + 0.25 * 1000 + 3 * std::numbers::ln2;
  CHECK(bernoulli(p.output(), p.targets(), nothing<float>()) == doctest::Approx(each * columns));
  p.panel.setZero();
  p.panel.row(2).setConstant(30);
  std::fill(p.labels.begin(), p.labels.end(), 2);
  CHECK(softmax_cross_entropy(p.output(), p.targets(), nothing<float>()) ==
        doctest::Approx(4 * std::exp(-30.0) * columns).scale(0).epsilon(1e-5));
}

TEST_CASE("a column of weight 0 takes no part, even when it is not a number") {
  Problem<double> p(7);
  const double before = softmax_cross_entropy(p.output(), p.targets(), nothing<double>());
  p.panel.col(3).setConstant(std::numeric_limits<double>::quiet_NaN());
  p.labels[3] = -1;
  Matrix<double> d(rows, columns);
  CHECK(softmax_cross_entropy(p.output(), p.targets(), view(d)) == before);
  CHECK(d.allFinite());
  p.panel(0, 0) = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(softmax_cross_entropy(p.output(), p.targets(), view(d))));
}

TEST_CASE("counts of right answers and of weight") {
  Problem<double> p(8);
  double expected = 0, total = 0;
  for (Index c = 0; c < columns; ++c) {
    const bool right = c % 2 == 0;
    p.panel.topRows(rows).col(c).setZero();
    p.panel((p.labels[c] + (right ? 0 : 1)) % rows, c) = 1;
    expected += right ? p.weights[c] : 0;
    total += p.weights[c];
  }
  CHECK(correct(p.output(), p.targets()) == doctest::Approx(expected).epsilon(1e-14));
  CHECK(total_weight(p.targets()) == doctest::Approx(total).epsilon(1e-14));
}

TEST_CASE("a label outside the classes is found") {
  Problem<double> p(9);
  p.labels[0] = rows;
  CHECK_THROWS_AS(softmax_cross_entropy(p.output(), p.targets(), nothing<double>()), Error);
  p.labels[0] = -1;
  CHECK_THROWS_AS(correct(p.output(), p.targets()), Error);
}
