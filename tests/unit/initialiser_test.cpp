// Initial values by their moments and bounds; the .npy reader on files that NumPy wrote and on damaged ones.
#include <doctest/doctest.h>

#include <cmath>
#include <Eigen/LU>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stiefel/error.hpp>
#include <stiefel/initialiser.hpp>
#include <string>

#include "npy.hpp"

using namespace stiefel;

namespace {

template <class S = double> Matrix<S> filled(const Initialiser& initialiser, Index rows, Index cols, std::uint64_t seed = 3) {
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

/// 60,000 numbers: the mean is known to σ/245, the variance to under 1 %.
void check_moments(const std::string& kind, double scale, double variance, bool uniform) {
  INFO(kind);
  const Moments m = moments(filled(Initialiser(kind, scale), 200, 300));
  CHECK(std::abs(m.mean) < 4.5 * std::sqrt(variance / 60000));
  CHECK(m.variance == doctest::Approx(variance).epsilon(0.025));
  CHECK(m.kurtosis == doctest::Approx(uniform ? 1.8 : 3).epsilon(0.05));
  if (!uniform) return;
  CHECK(m.largest <= std::sqrt(3 * variance));
  CHECK(m.largest > 0.999 * std::sqrt(3 * variance));
}

std::string bytes_of(const std::string& name) {
  std::ifstream file(STIEFEL_GOLDEN "/npy/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What read_npy says of these bytes.
std::string refusal(const std::string& bytes) {
  const auto path = std::filesystem::temp_directory_path() / "stiefel_initialiser_test.npy";
  std::ofstream(path, std::ios::binary) << bytes;
  std::string sentence;
  try {
    read_npy(path);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::data);
    sentence = error.what();
  }
  std::filesystem::remove(path);
  return sentence;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  REQUIRE(text.find(from) != text.npos);
  return text.replace(text.find(from), from.size(), to);
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
  // For Haar Q in O(n): E Q_ij² = 1/n, E tr Q = 0 and E (tr Q)² = 1; without the sign correction of QR the trace is biased.
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
    CHECK(read_npy(STIEFEL_GOLDEN "/npy/" + name + ".npy") == expected);
    Initialiser initialiser("file", 2);
    initialiser.file = STIEFEL_GOLDEN "/npy/" + name + ".npy";
    CHECK(filled(initialiser, 2, 3) == 2 * expected);
    CHECK_THROWS_WITH_AS(filled(initialiser, 3, 2), doctest::Contains("2 × 3 numbers, but 3 × 2 are needed"), Error);
  }
  CHECK(read_npy(STIEFEL_GOLDEN "/npy/vector_float32.npy") == expected.transpose().reshaped(6, 1));
}

TEST_CASE(".npy files that are refused") {
  const std::string good = bytes_of("c_float64.npy");
  CHECK(refusal(good).empty());
  CHECK(refusal(bytes_of("integers.npy")).find("<i8") != std::string::npos);
  CHECK(refusal(bytes_of("cube.npy")).find("3 dimensions") != std::string::npos);
  CHECK(refusal("").find("not a .npy file") != std::string::npos);
  CHECK(refusal("not an array at all").find("not a .npy file") != std::string::npos);
  CHECK(refusal(good.substr(0, 40)).find("cut off") != std::string::npos);
  CHECK(refusal(good.substr(0, good.size() - 1)).find("bytes follow") != std::string::npos);
  CHECK(refusal(good + "x").find("bytes follow") != std::string::npos);
  CHECK(refusal(replaced(good, "<f8", ">f8")).find(">f8") != std::string::npos);
  CHECK(refusal(replaced(good, "(2, 3), }", "(9223372036854775807, 9223372036854775807), }")).find("bytes follow") != std::string::npos);
  CHECK(refusal(replaced(good, "(2, 3)", "(99999999999999999999, 3)")).find("damaged") != std::string::npos);
  CHECK(refusal(replaced(good, "(2, 3)", "(-2, 3")).find("damaged") != std::string::npos);
  CHECK(refusal(replaced(good, "'shape'", "'shapes'")).find("damaged") != std::string::npos);
  CHECK(refusal(replaced(good, "False", "Maybe")).find("damaged") != std::string::npos);
  CHECK(refusal(replaced(good, "'shape'", "'descr'")).find("damaged") != std::string::npos);
  for (std::size_t k = 0; k < 128; ++k) {  // no byte of the header can make it crash
    std::string hostile = good;
    hostile[k] = '\xff';
    refusal(hostile);
  }
  CHECK_THROWS_WITH_AS(read_npy("/nonexistent/file.npy"), doctest::Contains("there is no file"), Error);
  CHECK_THROWS_AS(read_npy(std::filesystem::temp_directory_path()), Error);
}
