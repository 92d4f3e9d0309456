// Initial values by their moments and bounds; values from .npy files.
#include <doctest/doctest.h>

#include <cmath>
#include <Eigen/LU>
#include <stiefel/error.hpp>
#include <stiefel/initialiser.hpp>
#include <string>

using namespace stiefel;

namespace {

template <class S = double>
Matrix<S> filled(const Initialiser& initialiser, Index rows, Index cols, std::uint64_t seed = 3) {
  Rng rng(seed, "initial");
  Matrix<S> values(rows, cols);
  initialiser.fill(view(values), rng);
  return values;
}

struct Moments {
  double mean, variance, kurtosis, largest;
};

Moments moments(const Matrix<double>& X) {
  const Eigen::ArrayXd x = X.reshaped().array(), d = x - x.mean();
  return {x.mean(), d.square().mean(), d.square().square().mean() / std::pow(d.square().mean(), 2), x.abs().maxCoeff()};
}

/// 60,000 numbers: the mean is known to σ/245, the variance to under 1%.
void check_moments(const std::string& kind, double scale, double variance, bool uniform) {
  INFO(kind);
  const Moments m = moments(filled(Initialiser(kind, scale), 200, 300));
  CHECK(std::abs(m.mean) < 4.5 * std::sqrt(variance / 60000));
  CHECK(m.variance == doctest::Approx(variance).scale(0).epsilon(0.025));
  CHECK(m.kurtosis == doctest::Approx(uniform ? 1.8 : 3).epsilon(0.05));
  if (!uniform) return;
  CHECK(m.largest <= std::sqrt(3 * variance));
  CHECK(m.largest > 0.999 * std::sqrt(3 * variance));
}

}  // namespace

TEST_CASE("moments of the random initial values of a 200 × 300 matrix") {
  check_moments("glorot_uniform", 1, 2.0 / 500, true);
  check_moments("glorot_normal", 1, 2.0 / 500, false);
  check_moments("kaiming", 1, 2.0 / 300, false);
  check_moments("uniform", 0.01, 0.0001 / 3, true);
  check_moments("normal", 0.5, 0.25, false);
  check_moments("hidden_uniform", 1, 3.0 / 400 / 3, true);
  check_moments("glorot_uniform", 3, 9 * 2.0 / 500, true);
}

TEST_CASE("initial values that are not random") {
  CHECK(filled(Initialiser("zero", 5), 2, 3).isZero(0));
  CHECK(filled(Initialiser("constant", 5), 2, 3) == Matrix<double>::Constant(2, 3, 5));
  CHECK(filled(Initialiser("identity", 2), 2, 3) == 2 * Matrix<double>::Identity(2, 3));
  CHECK(filled(Initialiser("normal", 0), 2, 3).isZero(0));
  CHECK_THROWS_WITH_AS(filled(Initialiser("glorot"), 2, 2), doctest::Contains("glorot"), Error);
}

TEST_CASE_TEMPLATE("orthogonal initial values are orthogonal, whichever side is longer", S, float, double) {
  const double tolerance = 20 * double(std::numeric_limits<S>::epsilon());
  const auto defect = [](const auto& Q) { return (Q * Q.transpose() - Q.Identity(Q.rows(), Q.rows())).norm(); };
  CHECK(double(defect(filled<S>(Initialiser("orthogonal"), 20, 20))) < tolerance);
  CHECK(double(defect(filled<S>(Initialiser("orthogonal"), 10, 30))) < tolerance);
  CHECK(double(defect(filled<S>(Initialiser("orthogonal"), 30, 10).transpose().eval())) < tolerance);
}

TEST_CASE("orthogonal initial values follow the Haar measure") {
  // For Haar Q in O(n): E Q_ij² = 1/n, E tr Q = 0 and E (tr Q)² = 1; without the sign correction of QR the trace is
  // biased.
  const int samples = 3000;
  double trace = 0, square = 0, corner = 0;
  int positive = 0;
  Rng rng(11, "haar");
  Matrix<double> Q(4, 4);
  for (int k = 0; k < samples; ++k) {
    Initialiser("orthogonal").fill(view(Q), rng);
    trace += Q.trace() / samples;
    square += Q.trace() * Q.trace() / samples;
    corner += Q(0, 0) * Q(0, 0) / samples;
    positive += Q.determinant() > 0;
  }
  CHECK(std::abs(trace) < 0.08);
  CHECK(square == doctest::Approx(1).epsilon(0.12));
  CHECK(corner == doctest::Approx(0.25).epsilon(0.06));
  CHECK(std::abs(positive - samples / 2) < 120);
}

TEST_CASE("float and double draw the same numbers, another seed others") {
  CHECK(filled<float>(Initialiser("normal"), 4, 5) == filled<double>(Initialiser("normal"), 4, 5).cast<float>());
  CHECK(filled(Initialiser("normal"), 4, 5, 1) != filled(Initialiser("normal"), 4, 5, 2));
}

TEST_CASE("a strided view is filled without touching what lies between its columns") {
  Matrix<double> memory = Matrix<double>::Constant(5, 3, 9);
  Rng rng(1, "initial");
  Initialiser("uniform").fill(view(memory.topRows(3)), rng);
  CHECK(memory.bottomRows(2) == Matrix<double>::Constant(2, 3, 9));
  CHECK(memory.topRows(3).cwiseAbs().maxCoeff() <= 1);
}

TEST_CASE(".npy files as NumPy writes them") {
  Matrix<double> expected(2, 3);
  expected << -0.5, -0.25, 0, 0.25, 0.5, 0.75;
  for (const std::string name : {"c_float64", "fortran_float64", "c_float32"}) {
    Initialiser initialiser("file", 2);
    initialiser.file = STIEFEL_GOLDEN "/npy/" + name + ".npy";
    CHECK(filled(initialiser, 2, 3) == 2 * expected);
    CHECK_THROWS_WITH_AS(filled(initialiser, 3, 2), doctest::Contains("2 × 3 numbers, but 3 × 2 are needed"), Error);
  }
  Initialiser vector("file");
  vector.file = STIEFEL_GOLDEN "/npy/vector_float32.npy";
  CHECK(filled(vector, 6, 1) == expected.transpose().reshaped(6, 1));
  vector.file = STIEFEL_GOLDEN "/npy/cube.npy";
  CHECK_THROWS_WITH_AS(filled(vector, 6, 1), doctest::Contains("but 6 × 1 are needed"), Error);
  vector.file = "/nonexistent/file.npy";
  CHECK_THROWS_WITH_AS(filled(vector, 6, 1), doctest::Contains("there is no file"), Error);
}
