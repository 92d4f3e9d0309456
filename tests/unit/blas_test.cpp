// OpenBLAS from several threads at once, and LAPACK's drivers against matrices with known spectra.
#include <doctest/doctest.h>

#include <blas.hpp>
#include <cmath>
#include <Eigen/QR>
#include <functional>
#include <limits>
#include <numbers>
#include <stiefel/error.hpp>
#include <thread>

using namespace stiefel;

extern "C" void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*,
                       const double*, const int*, const double*, double*, const int*, std::size_t, std::size_t);

namespace {

/// Entries in [−1, 1] from a linear congruence: the same everywhere.
Matrix<double> numbers(Index rows, Index cols, std::uint32_t seed) {
  Matrix<double> A(rows, cols);
  for (double& a : A.reshaped()) a = double(std::int32_t(seed = seed * 1664525u + 1013904223u)) / 2147483648.0;
  return A;
}

Matrix<double> rotation(Index n, std::uint32_t seed) { return Eigen::HouseholderQR<Matrix<double>>(numbers(n, n, seed)).householderQ(); }

Matrix<double> naive(const Matrix<double>& A, const Matrix<double>& B) { return A.lazyProduct(B); }

Matrix<double> blas_product(const Matrix<double>& A, const Matrix<double>& B) {
  Matrix<double> C(A.rows(), B.cols());
  const int m = int(A.rows()), n = int(B.cols()), k = int(A.cols());
  const double one = 1, zero = 0;
  dgemm_("N", "N", &m, &n, &k, &one, A.data(), &m, B.data(), &k, &zero, C.data(), &m, 1, 1);
  return C;
}

}  // namespace

TEST_CASE("products from 8 threads at once are right, every one") {
  start_blas();
  constexpr int threads = 8, products = 400;
  std::vector<int> wrong(threads, 0);
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < threads; ++worker)
      workers.emplace_back([worker, &wrong] {
        const Index n = 40 + 8 * worker;
        const Matrix<double> A = numbers(n, n, worker), B = numbers(n, 50, worker + 100), expected = naive(A, B);
        for (int i = 0; i < products; ++i)
          if (!((blas_product(A, B) - expected).cwiseAbs().maxCoeff() < 1e-12)) ++wrong[worker];
      });
  }
  CHECK(wrong == std::vector<int>(threads, 0));
}

TEST_CASE("only the pthread flavour is accepted, and its kernels are named") {
  CHECK(blas_refusal(1) == "");
  CHECK(blas_refusal(0) ==
        "OpenBLAS is loaded in its serial flavour and stiefel needs the pthread one, because the others give wrong products when several "
        "threads "
        "call them; mend it with: apt-get install libopenblas0-pthread && update-alternatives --config libopenblas.so.0-x86_64-linux-gnu");
  CHECK(blas_refusal(2).starts_with("OpenBLAS is loaded in its OpenMP flavour"));
  CHECK(!blas_core().empty());
  CHECK(blas_configuration().starts_with("OpenBLAS "));
}

TEST_CASE("singular values, and the factors that give the matrix back") {
  for (const auto& [m, n] : {std::pair<Index, Index>{5, 5}, {7, 4}, {4, 7}, {1, 1}}) {
    const Index k = std::min(m, n);
    Matrix<double> S = Matrix<double>::Zero(m, n);
    for (Index i = 0; i < k; ++i) S(i, i) = 3.0 / double(i + 1);
    const Matrix<double> A = rotation(m, 1) * S * rotation(n, 2);
    const std::vector<double> s = singular_values(A);
    const Svd svd = singular_value_decomposition(A);
    REQUIRE(Index(s.size()) == k);
    for (Index i = 0; i < k; ++i) {
      CHECK(s[i] == doctest::Approx(3.0 / double(i + 1)).epsilon(1e-13));
      CHECK(svd.s[i] == doctest::Approx(s[i]).epsilon(1e-13));
    }
    const Matrix<double> back = svd.U * Eigen::Map<const Vector<double>>(svd.s.data(), k).asDiagonal() * svd.Vt;
    CHECK((back - A).norm() < 1e-13);
  }
  CHECK(singular_values(Matrix<double>(0, 3)).empty());
}

TEST_CASE("eigenvalues by descending modulus") {
  // Blocks r·rotation(α) have the eigenvalues r·e^{±iα}.
  Matrix<double> D = Matrix<double>::Zero(5, 5);
  const double radius[] = {0.5, 2.0}, angle[] = {0.3, 1.1};
  for (int b = 0; b < 2; ++b) {
    const double c = radius[b] * std::cos(angle[b]), s = radius[b] * std::sin(angle[b]);
    D.block(2 * b, 2 * b, 2, 2) << c, -s, s, c;
  }
  D(4, 4) = -1;
  const Matrix<double> Q = rotation(5, 3);
  const auto values = eigenvalues(Matrix<double>(Q * D * Q.transpose()));
  const std::complex<double> expected[] = {std::polar(2.0, 1.1), std::polar(2.0, -1.1), -1.0, std::polar(0.5, 0.3), std::polar(0.5, -0.3)};
  for (int i = 0; i < 5; ++i) CHECK(std::abs(values[i] - expected[i]) < 1e-13);
}

TEST_CASE("complex matrices: the discrete Fourier transform is unitary, a phase matrix keeps its phases") {
  const Index n = 6;
  ComplexMatrix F(n, n), P = ComplexMatrix::Zero(n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) F(i, j) = std::polar(1 / std::sqrt(double(n)), -2 * std::numbers::pi * double(i * j) / double(n));
  for (Index i = 0; i < n; ++i) P(i, i) = std::polar(double(n - i), 0.4 * double(i));
  for (const double s : singular_values(F)) CHECK(s == doctest::Approx(1).epsilon(1e-13));
  const auto values = eigenvalues(ComplexMatrix(F * P * F.adjoint()));
  for (Index i = 0; i < n; ++i) CHECK(std::abs(values[i] - P(i, i)) < 1e-13);
}

TEST_CASE("symmetric eigenvalues ascend") {
  Vector<double> d(4);
  d << -2, 0.5, 1, 8;
  const Matrix<double> Q = rotation(4, 9);
  const auto values = symmetric_eigenvalues(Q * d.asDiagonal() * Q.transpose());
  for (Index i = 0; i < 4; ++i) CHECK(values[i] == doctest::Approx(d[i]).epsilon(1e-13));
}

TEST_CASE("a matrix with NaN is told, not handed to LAPACK") {
  Matrix<double> A = Matrix<double>::Identity(3, 3);
  A(1, 2) = std::numeric_limits<double>::quiet_NaN();
  for (const auto& call :
       std::vector<std::function<void()>>{[&] { singular_values(A); }, [&] { eigenvalues(A); }, [&] { symmetric_eigenvalues(A); }}) {
    try {
      call();
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == Exit::diverged);
    }
  }
}
