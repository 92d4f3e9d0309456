// Bounded singular values, the non-normal Schur form, the symmetric-skew decomposition and low-rank projected updates:
// golden numbers and what each promises.
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include <stiefel/linear_algebra.hpp>

#include "golden_map.hpp"
#include "plugins/parametrisations/skew_exponential.hpp"

using namespace map_plugins;

namespace {

template <class T> Matrix<T> polar(Matrix<T> A) {
  const Index n = A.rows();
  Matrix<T> U(n, n), Vh(n, n);
  std::vector<double> s(static_cast<std::size_t>(n));
  singular_value_decomposition(view(A), view(U), s, view(Vh));
  return U * Vh;
}

/// W of low_rank_projection after a step that adds `step` to the parameter.
Matrix<double> after(Sample<double>& sample, const Matrix<double>& step) {
  as_vector(sample.theta.blocks()[0]) += step.reshaped();
  sample.map->after_step(sample.theta.blocks());
  sample.map->refresh(sample.theta.constant());
  return sample.W();
}

Complex complex_part(const Matrix<double>& form) { return from_re_over_im(form.leftCols(form.cols() / 2)); }

}  // namespace

TEST_CASE_TEMPLATE("maps and gradients are those of their definitions, by an independent NumPy script", S, float,
                   double) {
  check_golden<S>("spectral_householder", "{left: 2, right: 4, margin: 0.3}", "spectral_householder_6");
  check_golden<S>("nonnormal", "{}", "nonnormal_5");
  check_golden<S>("nonnormal", "{}", "nonnormal_6");
  check_golden<S>("symmetric_skew", "{beta: 0.7, gamma: 0.3}", "symmetric_skew_5");
}

TEST_CASE("numbers of parameters") {
  CHECK(count("spectral_householder", "{left: 3, right: 5}", 9) == 9 * (3 + 5) - 3 * 2 / 2 - 5 * 4 / 2 + 9);
  for (const Index n : {1, 2, 7, 8})
    CHECK(count("nonnormal", "{}", n) == n * (n - 1) / 2 + n + n * (n - 1) / 2 - n / 2);
  CHECK(count("low_rank_projection", "{}", 7) == 49);
  CHECK(count("low_rank_projection", "{field: complex}", 14) == 98);
}

TEST_CASE("spectral_householder: its singular values are the bounded ones of its definition") {
  Sample<double> sample("spectral_householder", "{left: 3, right: 5, margin: 0.4, centre: 1.5}", 8);
  for (const double value : sample.map->spectrum().singular_values) CHECK(value == doctest::Approx(1.5));
  Rng rng(2, "away");
  std::vector<double> expected;
  for (double& x : sample.theta.blocks()[1])
    expected.push_back(1.5 + 0.8 * (1 / (1 + std::exp(-(x = 3 * rng.normal()))) - 0.5));
  std::sort(expected.rbegin(), expected.rend());
  sample.map->refresh(sample.theta.constant());
  const std::vector<double> values = sample.map->spectrum().singular_values;
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == doctest::Approx(expected[i]));
  CHECK(recorded(sample).at("s_max") == doctest::Approx(expected.front()));
  CHECK_THROWS_WITH_AS(make_map<float>("spectral_householder", "{left: 8}", 8, 8), doctest::Contains("at most 7"),
                       Error);
  CHECK_THROWS_WITH_AS(make_map<float>("spectral_householder", "{left: 2, margin: 2}", 8, 8),
                       doctest::Contains("margin"), Error);
}

TEST_CASE("nonnormal: orthogonal at the start, eigenvalues of its blocks whatever T is") {
  Sample<double> sample("nonnormal", "{}", 9);
  CHECK(defect(sample.W()) < 1e-13);
  Rng rng(2, "away");
  for (const Index block : {1, 2, 3})
    for (double& x : sample.theta.blocks()[block]) x += 0.3 * rng.normal();
  sample.map->refresh(sample.theta.constant());
  CHECK(defect(sample.W()) > 0.1);
  std::vector<std::complex<double>> left = sample.map->spectrum().eigenvalues;
  const auto take = [&](std::complex<double> value) {
    const auto nearest = std::min_element(left.begin(), left.end(),
                                          [&](auto a, auto b) { return std::abs(a - value) < std::abs(b - value); });
    CHECK(std::abs(*nearest - value) < 1e-10);
    left.erase(nearest);
  };
  const auto gamma = sample.theta.blocks()[1], angle = sample.theta.blocks()[2];
  for (std::size_t b = 0; b < angle.size(); ++b)
    for (const double sign : {1.0, -1.0}) take(std::polar(1.0, sign * angle[b]) * gamma[b]);
  take(gamma.back());
  CHECK(left.empty());
}

TEST_CASE("low_rank_projection: a step of rank k ends at the polar factor, or on the geodesic of its tangent part") {
  for (const Index n : {2, 3, 7, 12})
    for (const Index k : {1, 2}) {
      const Matrix<double> step = 0.4 * gaussian<double>(n, k, 1) * gaussian<double>(n, k, 2).transpose();
      const std::string rank = "rank: " + std::to_string(k);
      Sample<double> projected("low_rank_projection", "{" + rank + "}", n),
          tangent("low_rank_projection", "{update: tangent, " + rank + "}", n);
      const Matrix<double> W = projected.W(), A = W.transpose() * step;
      CHECK((after(projected, step) - polar<double>(W + step)).norm() < 1e-12);
      CHECK((after(tangent, step) - W * pade_exponential<double>((A - A.transpose()) / 2)).norm() < 1e-12);
    }
}

TEST_CASE("low_rank_projection: the same for unitary matrices") {
  for (const Index n : {3, 8}) {
    Complex x(n, 1), y(n, 1);
    x.real() = gaussian<double>(n, 1, 1);
    x.imag() = gaussian<double>(n, 1, 2);
    y.real() = gaussian<double>(n, 1, 3);
    y.imag() = gaussian<double>(n, 1, 4);
    const Complex step = 0.3 * x * y.adjoint();
    Sample<double> projected("low_rank_projection", "{field: complex}", 2 * n),
        tangent("low_rank_projection", "{field: complex, update: tangent}", 2 * n);
    const Complex W = complex_part(projected.W()), A = W.adjoint() * step;
    CHECK((complex_part(after(projected, re_over_im<double>(step))) - polar<std::complex<double>>(W + step)).norm() <
          1e-12);
    CHECK((complex_part(after(tangent, re_over_im<double>(step))) -
           W * pade_exponential<std::complex<double>>((A - A.adjoint()) / 2))
              .norm() < 1e-12);
  }
}

TEST_CASE("low_rank_projection: of a step of any rank only its k largest singular values count") {
  const Index n = 20;
  Matrix<double> U = gaussian<double>(n, n, 1), V = gaussian<double>(n, n, 2);
  orthonormalise(view(U));
  orthonormalise(view(V));
  Vector<double> s = Vector<double>::Constant(n, 1e-3);
  s.head(2) << 0.5, 0.3;
  Sample<double> sample("low_rank_projection", "{rank: 2}", n);
  const Matrix<double> W = sample.W(), step = U * s.asDiagonal() * V.transpose();
  const Matrix<double> largest = U.leftCols(2) * s.head(2).asDiagonal() * V.leftCols(2).transpose();
  CHECK((after(sample, step) - polar<double>(W + largest)).norm() < 1e-6);
}

TEST_CASE("low_rank_projection: the exact truncation, also of singular values that lie close together") {
  const Index n = 20;
  const Matrix<double> step = 0.05 * gaussian<double>(n, n, 1);
  Matrix<double> A = step, U(n, n), Vh(n, n);
  std::vector<double> s(static_cast<std::size_t>(n));
  singular_value_decomposition(view(A), view(U), s, view(Vh));
  const Matrix<double> largest =
      U.leftCols(2) * Eigen::Map<const Vector<double>>(s.data(), 2).asDiagonal() * Vh.topRows(2);
  const auto error = [&](const std::string& truncation) {
    Sample<double> sample("low_rank_projection", "{rank: 2, truncation: " + truncation + "}", n);
    const Matrix<double> W = sample.W();
    return (after(sample, step) - polar<double>(W + largest)).norm();
  };
  CHECK(error("exact") < 1e-12);
  CHECK(error("approximate") > 1e-6);
}

TEST_CASE_TEMPLATE("low_rank_projection: a step of lower rank than `rank`", S, float, double) {
  const Index n = 8;
  for (const std::string update : {"projection", "tangent"}) {
    Sample<S> sample("low_rank_projection", "{rank: 2, update: " + update + "}", n);
    auto theta = as_matrix(sample.theta.blocks()[0], n, n);
    theta.row(3) *= S(1.25);
    sample.map->after_step(sample.theta.blocks());
    sample.map->refresh(sample.theta.constant());
    CHECK(isometry_defect<double>(Matrix<double>(sample.W().template cast<double>())) <
          100 * std::numeric_limits<S>::epsilon());
  }
}

TEST_CASE("low_rank_projection finds an orthogonal matrix by gradient steps of rank 1, and stays orthogonal in float") {
  for (const std::string update : {"projection", "tangent"}) {
    const Index n = 12;
    Sample<float> sample("low_rank_projection", "{update: " + update + "}", n);
    Rng rng(9, "target");
    Matrix<double> A = gaussian<double>(n, n, 5);
    A = (0.1 * (A - A.transpose())).eval();
    const Matrix<float> target = sample.W() * pade_exponential<double>(A).cast<float>();
    const float before = (sample.W() - target).norm();
    for (int step = 0; step < 3000; ++step) {
      as_vector(sample.theta.blocks()[0]) -= 0.2F * (sample.W() - target).reshaped();
      sample.map->after_step(sample.theta.blocks());
      sample.map->refresh(sample.theta.constant());
    }
    CHECK(before > 1);
    CHECK((sample.W() - target).norm() < 1e-4);
    CHECK(defect(sample.W()) < 1e-5);
  }
}

TEST_CASE("antisymmetric: A − γI with A by its strict lower triangle") {
  Sample<double> sample("antisymmetric", "{gamma: 0.5}", 3);
  sample.theta.numbers = {1, 2, 3};
  sample.map->refresh(sample.theta.constant());
  Matrix<double> expected(3, 3);
  expected << -0.5, -1, -2, 1, -0.5, -3, 2, 3, -0.5;
  CHECK(sample.W() == expected);
}

TEST_CASE("penalties are those of their formulas") {
  const auto penalty = [](Sample<double>& sample) {
    auto gradient = sample.theta;
    sample.map->refresh(sample.theta.constant());
    return sample.map->penalty(sample.theta.constant(), gradient.blocks());
  };
  Sample<double> prior("svd_margin", "{spectrum: free, prior: 0.2}", 4);
  as_vector(prior.theta.blocks()[2]) << 1, 2, 0.5, 1;
  CHECK(penalty(prior) == doctest::Approx(0.2 * (1 + 0.25)));
  Sample<double> gamma("nonnormal", "{gamma_penalty: 0.3}", 5);
  CHECK(penalty(gamma) == 0);
  as_vector(gamma.theta.blocks()[1]) << 1, 3, 0.5;
  CHECK(penalty(gamma) == doctest::Approx(0.3 * (4 + 0.25)));
  for (const std::string field : {"real", "complex"}) {
    Sample<double> factors("kronecker", "{factors: [2, 3], soft_unitary: 0.1, field: " + field + "}",
                           field == "real" ? 6 : 12);
    CHECK(penalty(factors) < 1e-28);
    as_vector(factors.theta.blocks()[1]) *= 2;  // WᴴW − I = 3 I
    CHECK(penalty(factors) == doctest::Approx(0.1 * 9 * 3));
  }
}

TEST_CASE("low_rank_projection: all of W is projected every so many steps; its starts") {
  Sample<double> sample("low_rank_projection", "project_every: 3", 8);
  for (int step = 1; step <= 7; ++step) {
    for (double& x : sample.theta.numbers) x *= 1.0001;  // rounding, as it were
    sample.map->refresh(sample.theta.constant());
    const Matrix<double> W = after(sample, 0.1 * gaussian<double>(8, 1, 1) * gaussian<double>(8, 1, 2).transpose());
    CHECK((defect(W) < 1e-13) == (step % 3 == 0));
  }
  CHECK(Sample<double>("low_rank_projection", "init: identity", 6).W() == Matrix<double>::Identity(6, 6));
  const Index n = 200;
  const Matrix<double> W = Sample<double>("low_rank_projection", "init: henaff", n).W();
  double least = 0, most = 0, others = W.squaredNorm();
  for (Index j = 0; j < n; j += 2) {
    const double angle = std::atan2(W(j + 1, j), W(j, j));
    least = std::min(least, angle), most = std::max(most, angle);
    others -= W.block<2, 2>(j, j).squaredNorm();
  }
  CHECK(std::abs(others) < 1e-10);
  CHECK((least < -0.9 * std::numbers::pi && most > 0.9 * std::numbers::pi));
}

TEST_CASE("records of svd_margin and nonnormal") {
  Sample<double> sample("svd_margin", "{spectrum: free, init: identity}", 4);
  as_vector(sample.theta.blocks()[2]) << 1, 2, 3, 6;
  as_vector(sample.theta.blocks()[1]) *= 2;  // VᵀV − I = 3 I
  sample.map->refresh(sample.theta.constant());
  const auto records = recorded(sample);
  CHECK(records.at("s_mean") == doctest::Approx(3));
  CHECK(records.at("s_std") == doctest::Approx(std::sqrt(3.5)));
  CHECK((records.at("s_min") == 1 && records.at("s_max") == 6));
  CHECK(records.at("u_defect") < 1e-14);
  CHECK(records.at("v_defect") == doctest::Approx(6));
  Sample<double> schur("nonnormal", "{init: zero}", 4);
  as_vector(schur.theta.blocks()[1]) << 0.5, 1.5;
  as_vector(schur.theta.blocks()[3]) << 1, -2, 2, 4;
  schur.map->refresh(schur.theta.constant());
  const auto of_schur = recorded(schur);
  CHECK(of_schur.at("t_norm") == doctest::Approx(5));
  CHECK((of_schur.at("gamma_min") == 0.5 && of_schur.at("gamma_max") == 1.5 && of_schur.at("a_norm") == 0));
}
TEST_CASE("claimed bounds of singular values; the record of kronecker") {
  const auto bounds = [](const char* map, const char* options) {
    const Claim claim = make_map<double>(map, options, 6, 6)->claim();
    CHECK(claim.kind == Claim::bounded);
    return std::pair(claim.low, claim.high);
  };
  CHECK(bounds("svd_margin", "margin: 0.25") == std::pair(0.75, 1.25));
  CHECK(bounds("svd_margin", "margin: 3") == std::pair(0., 4.));
  CHECK(bounds("spectral_householder", "{left: 2, right: 2, margin: 0.25, centre: 1.5}") == std::pair(1.25, 1.75));
  CHECK(bounds("householder", "{reflections: 6, u1: soft}") == std::pair(0., 1.));
  Sample<double> factors("kronecker", "{factors: [2, 3], field: real}", 6);
  as_vector(factors.theta.blocks()[1]) *= 2;  // WᵀW − I = 3 I
  factors.map->refresh(factors.theta.constant());
  CHECK(recorded(factors).at("largest_factor_defect") == doctest::Approx(3 * std::sqrt(3.)));
}
