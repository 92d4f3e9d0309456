// Parametrisations in the tree against their definitions: golden matrices and gradients from NumPy, and what each
// promises alone.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <Eigen/LU>
#include <limits>

#include "golden_map.hpp"
#include "plugins/parametrisations/reflections.hpp"

using namespace map_plugins;

namespace {

double determinant(Sample<double>& sample) { return sample.W().determinant(); }

}  // namespace

TEST_CASE_TEMPLATE("maps and gradients are those of their definitions, by an independent NumPy script", S, float,
                   double) {
  for (const std::string apply : {"wy", "sequential"}) {
    const std::string rest = ", apply: " + apply + "}";
    check_golden<S>("householder", "{reflections: 1" + rest, "householder_5_1");
    check_golden<S>("householder", "{reflections: 3" + rest, "householder_6_3");
    check_golden<S>("householder", "{reflections: 6" + rest, "householder_7_6");
    for (const std::string u1 : {"projected", "shadow", "soft"})
      check_golden<S>("householder", "{reflections: 6, u1: " + u1 + rest, "householder_6_6");
  }
  check_golden<S>("scaled_cayley", "{rho: 2}", "scaled_cayley_5_2_last");
  check_golden<S>("scaled_cayley", "{rho: 3, negatives: first}", "scaled_cayley_6_3_first");
  check_golden<S>("scaled_cayley", "{rho: 0}", "scaled_cayley_4_0_last");
  check_golden<S>("kronecker", "{factors: [3, 2, 2]}", "kronecker_complex");
  check_golden<S>("kronecker", "{factors: [2, 3], columns: [3, 4]}", "kronecker_wide");
  check_golden<S>("kronecker", "{factors: [2, 2, 4], field: real}", "kronecker_real");
  check_golden<S>("kronecker", "{}", "kronecker_complex_2_5");
  check_golden<S>("kronecker", "{field: real}", "kronecker_real_2_5");
  check_golden<S>("svd_margin", "{margin: 0.5}", "svd_margin_half");
  check_golden<S>("svd_margin", "{spectrum: free}", "svd_margin_free");
  check_golden<S>("svd_margin", "{margin: 3, relu: true}", "svd_margin_relu");
  check_golden<S>("urnn", "{}", "urnn_5");
  check_golden<S>("urnn", "{}", "urnn_8");
  for (const std::string field : {"complex", "real"}) {
    check_golden<S>("givens", "{capacity: 3, field: " + field + "}", "givens_" + field + "_tunable_6_3");
    check_golden<S>("givens", "{capacity: 4, field: " + field + "}", "givens_" + field + "_tunable_5_4");
    check_golden<S>("givens", "{style: fft, field: " + field + "}", "givens_" + field + "_fft_8");
    check_golden<S>("givens", "{style: fft, field: " + field + "}", "givens_" + field + "_fft_16");
  }
}

TEST_CASE("dense: any shape, its initial values, no claim") {
  Sample<double> sample("dense", "{init: constant, scale: 2}", 3, 5);
  CHECK(sample.W() == Matrix<double>::Constant(3, 5, 2));
  CHECK(sample.map->claim().kind == Claim::none);
  CHECK(sample.map->blocks()[0].name == "W");
  CHECK(sample.map->blocks()[0].rows == 3);
  CHECK(sample.map->blocks()[0].cols == 5);
  CHECK(sample.map->spectrum().eigenvalues.empty());
  CHECK(sample.map->spectrum().singular_values[0] == doctest::Approx(2 * std::sqrt(15.0)));
  CHECK(Sample<double>("dense", "{init: file, file: " STIEFEL_GOLDEN "/npy/orthogonal_4.npy}", 4).W().norm() ==
        doctest::Approx(2));
}

TEST_CASE("dense: the soft constraint's value and gradient") {
  Sample<double> sample("dense", "{soft_orthogonality: 0.3}", 5, 4);
  Parameters<double> dtheta(sample.map->blocks());
  const double penalty = sample.map->penalty(sample.theta.constant(), dtheta.blocks());
  CHECK(penalty == doctest::Approx(0.3 * std::pow(defect(sample.W()), 2)));
  Parameters<double> ignored(sample.map->blocks());
  for (std::size_t k = 0; k < dtheta.numbers.size(); ++k) {
    double values[2];
    for (int side : {0, 1}) {
      sample.theta.numbers[k] += side ? 2e-5 : -1e-5;
      values[side] = sample.map->penalty(sample.theta.constant(), ignored.blocks());
    }
    sample.theta.numbers[k] -= 1e-5;
    CHECK((values[1] - values[0]) / 2e-5 == doctest::Approx(dtheta.numbers[k]).epsilon(1e-7));
  }
}

TEST_CASE("householder: parameter counts") {
  CHECK(count("householder", "{reflections: 1}", 8) == 8);
  CHECK(count("householder", "{reflections: 5}", 8) == 8 * 5 - 5 * 4 / 2);
  CHECK(count("householder", "{reflections: 7}", 8) == 8 * 9 / 2 - 1);
  CHECK(count("householder", "{reflections: 8}", 8) == 8 * 9 / 2);
}

TEST_CASE("householder: the determinant's sign is that of the number of reflections") {
  for (Index m = 1; m < 6; ++m) {
    Sample<double> sample("householder", "{reflections: " + std::to_string(m) + "}", 6);
    CHECK(determinant(sample) == doctest::Approx(m % 2 == 0 ? 1 : -1));
  }
  int positive = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Sample<double> sample("householder", "{reflections: 6}", 6, Seed{seed});
    CHECK(determinant(sample) == doctest::Approx(-sample.theta.numbers.back()));
    positive += determinant(sample) > 0;
  }
  CHECK(positive > 3);
  CHECK(positive < 17);
}

TEST_CASE("householder: after a step the columns have unit length, W is the same and u₁ is where its option wants it") {
  for (const std::string u1 : {"projected", "shadow", "soft"}) {
    Sample<double> sample("householder", "{reflections: 5, u1: " + u1 + "}", 5);
    for (double& x : sample.theta.numbers) x *= 3;
    sample.theta.numbers.back() = -1.7;
    sample.map->refresh(sample.theta.constant());
    const Matrix<double> before = sample.W();
    sample.map->after_step(sample.theta.blocks());
    sample.map->refresh(sample.theta.constant());
    for_each_column(5, 4, [&](Index, Index first, Index length) {
      CHECK(as_vector(sample.theta.blocks()[0]).segment(first, length).norm() == doctest::Approx(1));
    });
    CHECK(sample.theta.numbers.back() == (u1 == "shadow" ? -1.7 : -1.0));
    CHECK((before - sample.W()).norm() < (u1 == "shadow" ? 1e-14 : 2.0));
    CHECK(defect(sample.W()) < 1e-14 * 5);
  }
  for (const std::string u1 : {"projected", "shadow"}) {  // −1 where u₁ ≤ 0
    Sample<double> sample("householder", "{reflections: 5, u1: " + u1 + "}", 5);
    sample.theta.numbers.back() = 1;
    sample.map->refresh(sample.theta.constant());
    const double with_one = sample.W().determinant();
    sample.theta.numbers.back() = 0;
    sample.map->after_step(sample.theta.blocks());
    sample.map->refresh(sample.theta.constant());
    CHECK(sample.W().determinant() == doctest::Approx(-with_one));
  }
  Sample<double> free("householder", "{reflections: 2, normalise_columns: false}", 4);
  for (double& x : free.theta.numbers) x *= 3;
  const std::vector<double> kept = free.theta.numbers;
  free.map->after_step(free.theta.blocks());
  CHECK(free.theta.numbers == kept);
}

TEST_CASE("householder: soft u₁ is the one singular value that is not 1") {
  Sample<double> sample("householder", "{reflections: 4, u1: soft}", 4);
  sample.theta.numbers.back() = -0.25;
  sample.map->refresh(sample.theta.constant());
  const std::vector<double> values = sample.map->spectrum().singular_values;
  CHECK(values[2] == doctest::Approx(1));
  CHECK(values[3] == doctest::Approx(0.25));
  CHECK(sample.map->claim().kind == Claim::bounded);
}

TEST_CASE("householder: a vanished column is refused by name") {
  Sample<float> sample("householder", "{reflections: 3}", 5);
  for (Index i = 5; i < 9; ++i) sample.theta.numbers[std::size_t(i)] = 0;
  CHECK_THROWS_WITH_AS(sample.map->refresh(sample.theta.constant()), doctest::Contains("column 1 of U"), Error);
}

TEST_CASE("householder: options that do not fit the shape") {
  CHECK_THROWS_WITH_AS(make_map<float>("householder", "{reflections: 9}", 8, 8), doctest::Contains("at most 8"), Error);
  CHECK_THROWS_WITH_AS(make_map<float>("householder", "{reflections: 4}", 8, 6), doctest::Contains("square"), Error);
  CHECK_THROWS_WITH_AS(make_map<float>("householder", "{reflections: 7, init: orthogonal}", 8, 8),
                       doctest::Contains("reflections: 8"), Error);
  CHECK_THROWS_WITH_AS(make_map<float>("scaled_cayley", "{rho: 9}", 8, 8), doctest::Contains("rho"), Error);
  CHECK_THROWS_WITH_AS(
      Sample<float>("householder", "{reflections: 3, init: file, file: " STIEFEL_GOLDEN "/npy/c_float32.npy}", 3),
      doctest::Contains("2 × 3"), Error);
}

TEST_CASE("algorithm 2: reflections of a given orthogonal matrix") {
  for (const Index n : {2, 5, 8, 30})
    for (const double sign : {1.0, -1.0}) {
      Rng rng(std::uint64_t(n), "algorithm 2");
      Matrix<double> Q(n, n);
      Initialiser("orthogonal").fill(view(Q), rng);
      if (Q.determinant() * sign < 0) Q.col(0) *= -1;
      const Reflections result = reflections_of(Q);
      Matrix<double> product = Matrix<double>::Identity(n, n);
      for (Index j = 0; j + 1 < n; ++j) product -= 2 * (product * result.U.col(j)) * result.U.col(j).transpose();
      product.col(n - 1) *= result.u1;
      CHECK((product - Q).norm() < 1e-13 * double(n));
      CHECK(result.u1 == (n % 2 == 0 ? -sign : sign));
    }
  const auto rebuilt = [](const Matrix<double>& Q) {
    const Reflections result = reflections_of(Q);
    Matrix<double> product = Matrix<double>::Identity(Q.rows(), Q.rows());
    for (Index j = 0; j + 1 < Q.rows(); ++j) product -= 2 * (product * result.U.col(j)) * result.U.col(j).transpose();
    product.col(Q.rows() - 1) *= result.u1;
    return product;
  };
  Matrix<double> flip = Matrix<double>::Identity(2, 2);
  flip(1, 1) = -1;
  CHECK((rebuilt(flip) - flip).norm() < 1e-15);
  for (const Index n : {2, 5, 8})
    CHECK((rebuilt(Matrix<double>::Identity(n, n)) - Matrix<double>::Identity(n, n)).norm() < 1e-14);
}

TEST_CASE("householder starts from a given matrix") {
  Sample<double> from_file("householder", "{reflections: 4, init: file, file: " STIEFEL_GOLDEN "/npy/orthogonal_4.npy}",
                           4);
  Sample<double> dense("dense", "{init: file, file: " STIEFEL_GOLDEN "/npy/orthogonal_4.npy}", 4);
  CHECK((from_file.W() - dense.W()).norm() < 1e-14);
  Sample<double> haar("householder", "{reflections: 12, init: orthogonal}", 12, Seed{4}),
      other("householder", "{reflections: 12, init: orthogonal}", 12, Seed{5});
  CHECK(defect(haar.W()) < 1e-13);
  CHECK((haar.W() - other.W()).norm() > 1);
}

TEST_CASE("scaled_cayley: eigenvalues of the initial W, and its determinant") {
  Sample<double> sample("scaled_cayley", "{rho: 4}", 10);
  for (Index k = 0; const auto& value : sample.map->spectrum().eigenvalues) {
    CHECK(std::abs(value) == doctest::Approx(1));
    k += 1;
    CHECK(k <= 10);
  }
  Index left = 0;  // pairs under −1 have −e^{±it} with t in [0, π/2]
  for (const auto& value : sample.map->spectrum().eigenvalues) left += value.real() < 0;
  CHECK(left == 4);
  for (const Index rho : {0, 1, 4, 7}) {
    Sample<double> other("scaled_cayley", "{init: uniform, scale: 2, rho: " + std::to_string(rho) + "}", 7);
    CHECK(determinant(other) == doctest::Approx(rho % 2 == 0 ? 1 : -1));
  }
  CHECK(determinant(*std::make_unique<Sample<double>>("scaled_cayley", "{}", 6)) ==
        doctest::Approx(-1));  // ρ = n/2 = 3
}

TEST_CASE("urnn and givens: parameter counts, starts, sizes") {
  CHECK(count("urnn", "{}", 2 * 12) == 7 * 12);
  for (const Index L : {2, 4, 12}) {
    CHECK(count("givens", "{capacity: " + std::to_string(L) + "}", 2 * 12) == L * (12 - 1) + 12);
    CHECK(count("givens", "{field: real, capacity: " + std::to_string(L) + "}", 12) == L * (12 - 1) / 2);
  }
  CHECK(count("givens", "{capacity: 12}", 2 * 12) == 12 * 12);
  CHECK(count("givens", "{style: fft}", 2 * 16) == 16 * 4 + 16);
  CHECK(count("givens", "{style: fft, field: real}", 16) == 16 / 2 * 4);
  CHECK((Sample<double>("givens", "{init: zero, capacity: 5}", 12).W() - Matrix<double>::Identity(12, 12)).norm() == 0);
  CHECK_THROWS_WITH_AS(make_map<double>("givens", "{style: fft}", 12, 12), doctest::Contains("choose 8"), Error);

  Sample<double> one("urnn", "{}", 20), other("urnn", "{permutation_seed: 2}", 20);
  CHECK(one.theta.numbers == other.theta.numbers);
  CHECK((one.W() - other.W()).norm() > 0.1);
  for (const Index n : {1, 2, 7, 30, 127, 128})
    CHECK(defect(Sample<double>("urnn", "{}", 2 * n).W()) < 1e-14 * double(n + 10));
}

TEST_CASE("svd_margin: the start, the rate of the spectrum, the margin") {
  Sample<double> start("svd_margin", "{margin: 0.001}", 6),
      free("svd_margin", "{spectrum: free, init: glorot_normal}", 6);
  CHECK(defect(start.W()) < 1e-13);
  CHECK(start.map->blocks()[2].rate_scale == 500);
  CHECK(start.theta.numbers.size() == 2 * 6 * 6 + 6);
  CHECK(free.map->blocks()[2].rate_scale == 1);
  CHECK(free.map->spectrum().singular_values[0] > 1.1);
  CHECK(Sample<double>("svd_margin", "{margin: 0}", 6).map->blocks()[2].rate_scale == 1);
  CHECK((Sample<double>("svd_margin", "{init: identity}", 6).W() - Matrix<double>::Identity(6, 6)).norm() < 1e-15);
  for (std::size_t k = 72; k < 78; ++k) start.theta.numbers[k] = k % 2 ? 1e3 : -1e3;
  start.map->refresh(start.theta.constant());
  CHECK(start.map->spectrum().singular_values[0] == doctest::Approx(1.001));
  CHECK(start.map->spectrum().singular_values[5] == doctest::Approx(0.999));
}

TEST_CASE("svd_margin: the spectrum is that of W where U has drifted") {
  Sample<double> sample("svd_margin", "{margin: 0.1}", 6);
  as_vector(sample.theta.blocks()[0]) *= 1.5;
  sample.map->refresh(sample.theta.constant());
  for (const double s : sample.map->spectrum().singular_values) CHECK(s == doctest::Approx(1.5).epsilon(1e-12));
}

TEST_CASE("svd_margin: soft orthogonality is the penalty of W") {
  for (const std::string spectrum :
       {"{spectrum: free, init: glorot_normal, soft_orthogonality: 0.3}", "{margin: 2, soft_orthogonality: 0.3}"}) {
    Sample<double> sample("svd_margin", spectrum, 6);
    for (std::size_t k = 72; k < 78; ++k) sample.theta.numbers[k] += 0.3 * double(k - 74);
    sample.map->refresh(sample.theta.constant());
    const Matrix<double> W = sample.W();
    auto gradient = sample.theta;
    CHECK(sample.map->penalty(sample.theta.constant(), gradient.blocks()) ==
          doctest::Approx(0.3 * (W.transpose() * W - Matrix<double>::Identity(6, 6)).squaredNorm()));
  }
}

TEST_CASE("full_unitary: parameters, starts, the released code's gradient, projection") {
  CHECK(Sample<double>("full_unitary", "{}", 10).theta.numbers.size() == 2 * 5 * 5);
  CHECK(Sample<double>("full_unitary", "{field: real}", 10).theta.numbers.size() == 10 * 10);
  for (const std::string init : {"haar", "identity", "restricted"})
    CHECK(defect(Sample<double>("full_unitary", "{init: " + init + "}", 14).W()) < 1e-13);
  CHECK_THROWS_WITH_AS(make_map<double>("full_unitary", "{field: real, init: restricted}", 4, 4),
                       doctest::Contains("complex"), Error);

  // W̄ = [[P, Q], [R, T]]: the whole gradient is (P + T, R − Q), the released code's (P, R).
  Sample<double> whole("full_unitary", "{}", 6), half("full_unitary", "{gradient: wisdom_topblock}", 6);
  const Matrix<double> I = Matrix<double>::Identity(6, 6), G = gaussian<double>(6, 6, 1);
  const std::vector<double> of_whole = whole.gradient(I, G), of_half = half.gradient(I, G);
  Matrix<double> expected(6, 3);
  expected << G.topLeftCorner(3, 3) + G.bottomRightCorner(3, 3), G.bottomLeftCorner(3, 3) - G.topRightCorner(3, 3);
  CHECK((as_matrix(std::span<const double>(of_whole), 6, 3) - expected).norm() < 1e-14);
  CHECK((as_matrix(std::span<const double>(of_half), 6, 3) - G.leftCols(3)).norm() < 1e-14);

  Sample<double> drifted("full_unitary", "{reproject_every: 2}", 8);
  for (double& x : drifted.theta.numbers) x *= 1.01;
  drifted.map->after_step(drifted.theta.blocks());
  drifted.map->refresh(drifted.theta.constant());
  CHECK(defect(drifted.W()) > 1e-3);
  drifted.map->after_step(drifted.theta.blocks());
  drifted.map->refresh(drifted.theta.constant());
  CHECK(defect(drifted.W()) < 1e-13);
}

TEST_CASE("the float maps stay orthogonal over thousands of elementwise steps") {
  CHECK(defect_after("scaled_cayley", "{rho: 17}", 170, 2000, 1e-2F) < 1e-5);
  CHECK(defect_after("householder", "{reflections: 32}", 256, 1000, 1e-3F) < 2e-5);
  CHECK(defect_after("urnn", "{}", 256, 1000, 1e-3F) < 1e-5);
  CHECK(defect_after("givens", "{capacity: 16}", 256, 1000, 1e-3F) < 2e-5);
  CHECK(defect_after("householder", "{reflections: 128, apply: wy}", 128, 300, 1e-3F) < 2e-5);
}

TEST_CASE("records of scaled_cayley: ‖A‖₂ and the condition number of I + A") {
  Sample<double> sample("scaled_cayley", "{init: zero}", 4);
  sample.theta.numbers = {-2, 0, 0, 0, 0, -0.5};  // blocks of 2 and 0.5
  sample.map->refresh(sample.theta.constant());
  auto records = recorded(sample);
  CHECK(records.at("a_norm") == doctest::Approx(2));
  CHECK(records.at("condition") == doctest::Approx(std::sqrt(5 / 1.25)));
}

TEST_CASE_TEMPLATE("skew-symmetric matrices by their strict lower triangle", S, float, double) {
  const std::vector<S> theta{1, 2, 3};
  Matrix<S> A(3, 3);
  skew<S>(theta, view(A));
  Matrix<S> expected(3, 3);
  expected << 0, -1, -2, 1, 0, -3, 2, 3, 0;
  CHECK(A == expected);
  Matrix<S> dA(3, 3);
  dA << 1, 2, 3, 4, 5, 6, 7, 8, 10;
  std::vector<S> dtheta{10, 20, 30};
  add_skew<S>(dtheta, dA);
  CHECK(dtheta == std::vector<S>{12, 24, 32});
}

TEST_CASE("a complex map gives n singular values and eigenvalues") {
  class Turned final : public Dense<double> {  // W = diag(2i, −1)
   public:
    Turned() : Dense<double>(Shape{4, 4, true}) {}
    std::vector<BlockSpec> blocks() const override { return {}; }
    void initialise(Blocks<double>, Rng&) const override {}
    void materialise(CBlocks<double>, Mat<double> W) override {
      W << 0, 0, -2, 0, 0, -1, 0, 0, 2, 0, 0, 0, 0, 0, 0, -1;
    }
    void pullback(CBlocks<double>, CMat<double>, CMat<double>, Blocks<double>) override {}
  };
  Turned map;
  map.refresh({});
  const Spectrum spectrum = map.spectrum();
  REQUIRE(spectrum.singular_values.size() == 2);
  CHECK(spectrum.singular_values[0] == doctest::Approx(2));
  CHECK(std::abs(spectrum.eigenvalues[0] - std::complex<double>(0, 2)) < 1e-14);
  CHECK(std::abs(spectrum.eigenvalues[1] - std::complex<double>(-1, 0)) < 1e-14);
}

TEST_CASE("initial values have the bounds that their options name") {
  const double pi = std::acos(-1.0), of_urnn = std::sqrt(6.0 / (2 + 2 * 1000));
  const auto values = [](const char* map, const char* options, Index rows, Index block) {
    const auto made = make_map<double>(map, options, rows, rows);
    Parameters<double> theta(made->blocks());
    Rng rng(1, "initial");
    made->initialise(theta.blocks(), rng);
    std::vector<double> numbers;
    std::ranges::copy_if(theta.blocks()[block], std::back_inserter(numbers), [](double x) { return x != 0; });
    return numbers;
  };
  struct Case {
    const char *map, *options;
    Index rows, block;
    double low, high;
  };
  for (const Case& c :
       {Case{"scaled_cayley", "{init: uniform, scale: 2}", 60, 0, -2, 2},
        {"scaled_cayley", "init: henaff", 1000, 0, -pi, pi},
        {"scaled_cayley_unitary", "{init: uniform, scale: 2}", 80, 0, -2, 2},
        {"scaled_cayley_unitary", "init: henaff", 2000, 0, -pi, pi},
        {"scaled_cayley_unitary", "init: zero", 2000, 1, 0, 2 * pi},
        {"lie_exponential", "{init: uniform, scale: 2}", 60, 0, -2, 2},
        {"lie_exponential", "", 1000, 0, -pi, pi},
        {"nonnormal", "{init: uniform, scale: 2}", 60, 0, -2, 2},
        {"nonnormal", "", 1000, 0, -pi, pi},
        {"nonnormal", "", 1000, 2, -pi, pi},
        {"unitary_householder", "reflections: 1", 2000, 1, -pi, pi},
        {"householder", "{init: uniform, normalise_columns: false, std: 2}", 100, 0, -std::sqrt(12.), std::sqrt(12.)},
        {"givens", "{capacity: 50, angle: 2}", 100, 0, -2, 2},
        {"givens", "{capacity: 50, angle: 2}", 100, 1, -2, 2},
        {"givens", "", 2000, 2, -3.14, 3.14},
        {"urnn", "", 2000, 0, -pi, pi},
        {"urnn", "", 2000, 2, -pi, pi},
        {"urnn", "", 2000, 3, -of_urnn, of_urnn},
        {"urnn", "", 2000, 4, -of_urnn, of_urnn}}) {
    INFO(c.map << " {" << c.options << "}, block " << c.block);
    const std::vector<double> x = values(c.map, c.options, c.rows, c.block);
    REQUIRE(x.size() >= 500);
    const auto [least, most] = std::ranges::minmax(x);
    const double width = c.high - c.low;
    CHECK((least >= c.low && least < c.low + 0.03 * width));
    CHECK((most <= c.high && most > c.high - 0.03 * width));
    CHECK(as_vector(std::span<const double>(x)).mean() ==
          doctest::Approx((c.low + c.high) / 2).scale(width).epsilon(0.05));
  }
  for (const char* map : {"scaled_cayley", "scaled_cayley_unitary", "lie_exponential", "nonnormal"}) {
    CAPTURE(map);
    std::vector<double> t = values(map, "init: cayley", std::string(map) == "scaled_cayley_unitary" ? 2000 : 1000, 0);
    REQUIRE(t.size() == 500);  // −tan(t/2), t uniform in [0, π/2]
    for (double& x : t) x = -2 * std::atan(x);
    const auto [least, most] = std::ranges::minmax(t);
    CHECK((least >= 0 && least < 0.05 && most < pi / 2 && most > pi / 2 - 0.05));
    CHECK(as_vector(std::span<const double>(t)).mean() == doctest::Approx(pi / 4).epsilon(0.05));
  }
  for (const char* map : {"householder", "unitary_householder"}) {
    CAPTURE(map);
    const std::vector<double> x = values(map, "{normalise_columns: false, std: 2, reflections: 40}", 100, 0);
    CHECK(as_vector(std::span<const double>(x)).squaredNorm() / double(x.size()) == doctest::Approx(4).epsilon(0.1));
  }
  CHECK(values("scaled_cayley_unitary", "phases: zero", 20, 1).empty());
  CHECK(values("unitary_householder", "{reflections: 3, phases: zero}", 20, 1).empty());
  CHECK(values("nonnormal", "angles: zero", 20, 2).empty());
  for (const char* field : {"real", "complex"})
    CHECK((Sample<double>("kronecker", "{factors: [2, 3], init: identity, field: " + std::string(field) + "}",
                          field[0] == 'r' ? 6 : 12)
               .W() -
           Matrix<double>::Identity(field[0] == 'r' ? 6 : 12, field[0] == 'r' ? 6 : 12))
              .norm() == 0);
}
