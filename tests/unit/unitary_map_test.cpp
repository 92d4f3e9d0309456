// Exponentials, complex Cayley transforms and complex reflections: golden matrices and gradients, their own promises,
// drift in float.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "golden_map.hpp"
#include "host/memory_archive.hpp"
#include "plugins/parametrisations/skew_exponential.hpp"

using namespace map_plugins;

TEST_CASE_TEMPLATE("maps and gradients are those of their definitions, by an independent NumPy script", S, float,
                   double) {
  for (const std::string rest : {"", ", pullback: block", ", base: moving"}) {
    check_golden<S>("lie_exponential", "{field: real" + rest + "}", "lie_exponential_real_5");
    check_golden<S>("lie_exponential", "{field: real" + rest + "}", "lie_exponential_real_6");
    check_golden<S>("lie_exponential", "{field: real" + rest + "}", "lie_exponential_degenerate_8");
    check_golden<S>("lie_exponential", "{field: real, coordinates: hyland_ratsch" + rest + "}",
                    "lie_exponential_rows_5");
    check_golden<S>("lie_exponential", "{field: complex" + rest + "}", "lie_exponential_complex_4");
    check_golden<S>("lie_exponential", "{field: complex, coordinates: hyland_ratsch" + rest + "}",
                    "lie_exponential_complex_rows_3");
  }
  check_golden<S>("scaled_cayley_unitary", "{}", "scaled_cayley_unitary_4");
  check_golden<S>("scaled_cayley", "{bandwidth: 2, rho: 3}", "scaled_cayley_band_6");
  check_golden<S>("unitary_householder", "{reflections: 1}", "unitary_householder_5_1");
  check_golden<S>("unitary_householder", "{reflections: 3}", "unitary_householder_5_3");
  check_golden<S>("unitary_householder", "{reflections: 3}", "unitary_householder_4_3");
}

TEST_CASE("numbers of parameters") {
  CHECK(count("lie_exponential", "{}", 7) == 7 * 6 / 2);
  CHECK(count("lie_exponential", "{field: complex}", 14) == 49);
  CHECK(count("scaled_cayley_unitary", "{}", 14) == 49 + 7);
  for (const Index l : {1, 3, 6})
    CHECK(count("scaled_cayley", "{bandwidth: " + std::to_string(l) + "}", 7) == 7 * l - l * (l + 1) / 2);
  for (const Index m : {1, 4, 6})
    CHECK(count("unitary_householder", "{reflections: " + std::to_string(m) + "}", 14) ==
          2 * (7 * m - m * (m - 1) / 2) + 7);
}

TEST_CASE(
    "exp(A) and its derivative: eigenvalues and Padé approximants agree, for large and for repeated eigenvalues") {
  const auto compare = []<class T>(Matrix<T> A, double size) {
    A = ((A - A.adjoint()) * size).eval();
    Matrix<T> G = Matrix<T>::Random(A.rows(), A.cols());
    SkewExponential<T> exponential;
    exponential.compute(A);
    CHECK((exponential.value() - pade_exponential(A)).norm() < 1e-13 * (1 + A.norm()) * double(A.rows()));
    CHECK((exponential.adjoint(G) - block_adjoint(A, G)).norm() < 1e-13 * (1 + A.norm()) * double(A.rows()) * G.norm());
  };
  for (const Index n : {1, 2, 3, 9, 20, 65})
    for (const double size : {0.0, 1e-9, 1e-3, 1.0, 20.0}) {
      compare(gaussian<double>(n, n, 1), size);
      Complex A(n, n);
      A.real() = gaussian<double>(n, n, 2);
      A.imag() = gaussian<double>(n, n, 3);
      compare(A, size);
      compare(Matrix<double>(Matrix<double>::Identity(n, n).rowwise().reverse().triangularView<Eigen::Upper>()), size);
    }
}

TEST_CASE("lie_exponential: a change of base keeps W and clears A, every so many steps") {
  for (const std::string field : {"real", "complex"}) {
    Sample<double> sample("lie_exponential", "{base: moving, rebase_every: 3, project_every: 2, field: " + field + "}",
                          8);
    Rng rng(3, "steps");
    for (int step = 1; step <= 12; ++step) {
      for (double& x : sample.theta.numbers) x += 0.1 * rng.normal();
      sample.map->refresh(sample.theta.constant());
      const Matrix<double> before = sample.W();
      sample.map->after_step(sample.theta.blocks());
      sample.map->refresh(sample.theta.constant());
      CHECK((sample.W() - before).norm() < 1e-13);
      const bool cleared =
          std::all_of(sample.theta.numbers.begin(), sample.theta.numbers.end(), [](double x) { return x == 0; });
      CHECK(cleared == (step % 3 == 0));
    }
    CHECK(defect(sample.W()) < 1e-13);
    CHECK(sample.gradient_error(gaussian<double>(8, 5, 1), gaussian<double>(8, 5, 2)) < 1e-7);
  }
}

TEST_CASE("lie_exponential: every so many changes of base remove rounding from it") {
  Sample<double> sample("lie_exponential", "{base: moving, rebase_every: 2, project_every: 3}", 8);
  MemoryArchive state;
  sample.map->serialise(state);
  StateItems items = state.items();
  std::vector<char>& base = items.at("base").bytes;
  for (std::size_t k = 0; k < base.size(); k += sizeof(double)) {
    double number = 0;
    std::memcpy(&number, &base[k], sizeof(double));
    number *= 1 + 1e-6;
    std::memcpy(&base[k], &number, sizeof(double));
  }
  MemoryArchive changed(items);
  sample.map->serialise(changed);
  for (int step = 1; step <= 6; ++step) {
    sample.map->refresh(sample.theta.constant());
    CHECK(defect(sample.W()) > 1e-7);
    sample.map->after_step(sample.theta.blocks());
  }
  sample.map->refresh(sample.theta.constant());
  CHECK(defect(sample.W()) < 1e-13);
}

TEST_CASE("lie_exponential: initial angles") {
  const auto norm = [](const std::string& options, Index rows) {
    Sample<double> sample("lie_exponential", options, rows);
    const auto records = recorded(sample);
    REQUIRE(records.size() == 1);
    return records.begin()->second;
  };
  for (const std::string rest : {"", ", field: complex", ", pullback: block", ", coordinates: hyland_ratsch"}) {
    CHECK(norm("{init: zero" + rest + "}", 12) == 0);
    const double cayley = norm("{init: cayley" + rest + "}", 12);
    CHECK(cayley <= 1);  // tan(π/4)
    CHECK(cayley > 0.5);
    const double henaff = norm("{init: henaff" + rest + "}", 120);
    CHECK(henaff <= std::acos(-1.0));
    CHECK(henaff > 2);
  }
}

TEST_CASE("unitary_householder starts from a given or a Haar-distributed matrix") {
  const std::string file = STIEFEL_GOLDEN "/npy/unitary_4.npy";
  Matrix<double> Q(8, 4);
  Initialiser source("file");
  source.file = file;
  Rng rng(1);
  source.fill(view(Q), rng);
  Sample<double> given("unitary_householder", "{reflections: 3, init: file, file: " + file + "}", 8);
  CHECK((given.W().leftCols(4) - Q).norm() < 1e-14);
  Sample<double> haar("unitary_householder", "{reflections: 11, init: unitary}", 24, Seed{4}),
      other("unitary_householder", "{reflections: 11, init: unitary}", 24, Seed{5});
  CHECK(defect(haar.W()) < 1e-13);
  CHECK((haar.W() - other.W()).norm() > 1);
}

TEST_CASE("unitary_householder: options that do not fit, and a vanished column") {
  CHECK_THROWS_WITH_AS(make_map<float>("unitary_householder", "{reflections: 8}", 16, 16),
                       doctest::Contains("choose 1 … 7"), Error);
  CHECK_THROWS_WITH_AS(make_map<float>("unitary_householder", "{reflections: 5, init: unitary}", 16, 16),
                       doctest::Contains("`reflections: 7`"), Error);
  CHECK_THROWS_WITH_AS(make_map<float>("scaled_cayley", "{bandwidth: 8}", 8, 8), doctest::Contains("choose 1 … 7"),
                       Error);
  Sample<float> sample("unitary_householder", "{reflections: 3}", 10);
  for (Index i = 10; i < 18; ++i) sample.theta.numbers[std::size_t(i)] = 0;
  CHECK_THROWS_WITH_AS(sample.map->refresh(sample.theta.constant()), doctest::Contains("column 1 of U"), Error);
}

TEST_CASE("scaled_cayley_unitary: the released code's gradient is half the derivative off the diagonal of A") {
  const Index n = 5;
  Sample<double> exact("scaled_cayley_unitary", "{init: uniform}", 2 * n),
      released("scaled_cayley_unitary", "{init: uniform, gradient: released}", 2 * n);
  const Matrix<double> X = gaussian<double>(2 * n, 6, 1), dY = gaussian<double>(2 * n, 6, 2);
  const std::vector<double> whole = exact.gradient(X, dY), theirs = released.gradient(X, dY);
  for (Index k = 0; k < Index(whole.size()); ++k) {
    const bool off_diagonal = k < n * n && k / n != k % n;
    CHECK(theirs[std::size_t(k)] == doctest::Approx((off_diagonal ? 0.5 : 1) * whole[std::size_t(k)]));
  }
}

TEST_CASE("the float maps stay unitary over thousands of elementwise steps") {
  CHECK(defect_after("scaled_cayley_unitary", "{}", 128, 1000, 1e-2F) < 1e-5);
  CHECK(defect_after("unitary_householder", "{reflections: 16}", 128, 1000, 1e-3F) < 1e-5);
  CHECK(defect_after("lie_exponential", "{}", 64, 1000, 1e-2F) < 1e-5);
  CHECK(defect_after("lie_exponential", "{base: moving, rebase_every: 1, project_every: 100}", 64, 1000, 1e-2F) < 1e-5);
  CHECK(defect_after("lie_exponential", "{field: complex, base: moving, rebase_every: 10}", 64, 1000, 1e-2F) < 1e-5);
}
