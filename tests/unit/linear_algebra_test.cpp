// LAPACK's factorisations against matrices with known spectra.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <stiefel/error.hpp>
#include <stiefel/linear_algebra.hpp>
#include <stiefel/manifold.hpp>
#include <type_traits>
#include <utility>
#include <vector>

using namespace stiefel;

namespace {

using C = std::complex<double>;

/// Entries in [−1, 1] from a linear congruence: the same everywhere.
template <class T> Matrix<T> numbers(Index rows, Index cols, std::uint32_t seed) {
  Matrix<T> A(rows, cols);
  const auto next = [&] { return double(std::int32_t(seed = seed * 1664525u + 1013904223u)) / 2147483648.0; };
  for (T& a : A.reshaped())
    if constexpr (std::is_same_v<T, C>)
      a = {next(), next()};
    else
      a = next();
  return A;
}

template <class T> Matrix<T> rotation(Index n, std::uint32_t seed) {
  Matrix<T> Q = numbers<T>(n, n, seed);
  orthonormalise(view(Q));
  return Q;
}

template <class T> Matrix<T> one(Index n) { return Matrix<T>::Identity(n, n); }

}  // namespace

TEST_CASE_TEMPLATE("QR with a positive diagonal", T, double, C) {
  for (const auto& [m, n] : {std::pair<Index, Index>{5, 5}, {7, 4}, {1, 1}, {40, 40}}) {
    const Matrix<T> A = numbers<T>(m, n, 3);
    Matrix<T> Q = A;
    orthonormalise(view(Q));
    CHECK((Q.adjoint() * Q - one<T>(n)).norm() < 1e-13);
    const Matrix<T> R = Q.adjoint() * A;
    CHECK((Q * R - A).norm() < 1e-12);
    for (Index j = 0; j < n; ++j) {
      CHECK(std::real(R(j, j)) > 0);
      CHECK(std::abs(std::imag(R(j, j))) < 1e-13);
      for (Index i = j + 1; i < n; ++i) CHECK(std::abs(R(i, j)) < 1e-13);
    }
  }
}

TEST_CASE_TEMPLATE("the polar factor is the closest matrix with orthonormal columns", T, double, C) {
  for (const auto& [m, n] : {std::pair<Index, Index>{5, 5}, {7, 4}, {1, 1}, {3, 0}}) {
    const Matrix<T> A = numbers<T>(m, n, 13);
    Matrix<T> Q = A;
    polar_factor(view(Q));
    CHECK(isometry_defect<T>(Q) < 1e-13);
    const Matrix<T> H = product(adjoint(Q), A);  // A = QH, H Hermitian and positive
    CHECK((product(Q, H) - A).norm() < 1e-13);
    CHECK((H - H.adjoint()).norm() < 1e-13);
    std::vector<double> values(static_cast<std::size_t>(n));
    Matrix<T> working = H;
    hermitian_eigenvalues(view(working), values);
    for (const double value : values) CHECK(value > 0);
  }
  Matrix<T> wide = numbers<T>(2, 3, 13);
  CHECK_THROWS_AS(polar_factor(view(wide)), Error);
  const Matrix<T> twice = T(2) * one<T>(4);
  CHECK(isometry_defect<T>(twice) == doctest::Approx(6));
}

TEST_CASE_TEMPLATE("inverse and solution, also of a block of a larger matrix", T, double, C) {
  for (const Index n : {1, 2, 7, 65}) {
    const Matrix<T> A = numbers<T>(n, n, 5) + T(double(n)) * one<T>(n), B = numbers<T>(n, 3, 6);
    Matrix<T> frame = Matrix<T>::Constant(n + 2, n + 2, T(9)), factors = A, X = B;
    frame.topLeftCorner(n, n) = A;
    invert(view(frame.topLeftCorner(n, n)));
    CHECK((frame.topLeftCorner(n, n) * A - one<T>(n)).norm() < 1e-12);
    CHECK(frame.bottomRows(2) == Matrix<T>::Constant(2, n + 2, T(9)));
    solve(view(factors), view(X));
    CHECK((A * X - B).norm() < 1e-12);
  }
  Matrix<T> singular = Matrix<T>::Zero(2, 2);
  CHECK_THROWS_WITH_AS(invert(view(singular)), "a matrix to be inverted is singular: pivot 1 is zero; lower the rate",
                       Error);
}

TEST_CASE_TEMPLATE("singular values, and the factors that give the matrix back", T, double, C) {
  for (const auto& [m, n] : {std::pair<Index, Index>{5, 5}, {7, 4}, {4, 7}, {1, 1}, {0, 3}}) {
    const Index k = std::min(m, n);
    Matrix<T> S = Matrix<T>::Zero(m, n);
    for (Index i = 0; i < k; ++i) S(i, i) = 3.0 / double(i + 1);
    const Matrix<T> A = rotation<T>(m, 1) * S * rotation<T>(n, 2);
    Matrix<T> first = A, second = A, U(m, k), Vh(k, n);
    std::vector<double> s(k), again(k);
    singular_values(view(first), s);
    singular_value_decomposition(view(second), view(U), again, view(Vh));
    for (Index i = 0; i < k; ++i) {
      CHECK(s[i] == doctest::Approx(3.0 / double(i + 1)).epsilon(1e-13));
      CHECK(again[i] == doctest::Approx(s[i]).epsilon(1e-13));
    }
    const Vector<double> diagonal = Eigen::Map<const Vector<double>>(s.data(), k);
    CHECK((U * diagonal.template cast<T>().asDiagonal() * Vh - A).norm() < 1e-13);
  }
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
  const Matrix<double> Q = rotation<double>(5, 3);
  Matrix<double> A = Q * D * Q.transpose();
  std::vector<C> values(5);
  eigenvalues(view(A), values);
  const C expected[] = {std::polar(2.0, 1.1), std::polar(2.0, -1.1), -1.0, std::polar(0.5, 0.3), std::polar(0.5, -0.3)};
  for (int i = 0; i < 5; ++i) CHECK(std::abs(values[i] - expected[i]) < 1e-13);
}

TEST_CASE("complex matrices: the discrete Fourier transform is unitary, a phase matrix keeps its phases") {
  const Index n = 6;
  Matrix<C> F(n, n), P = Matrix<C>::Zero(n, n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j)
      F(i, j) = std::polar(1 / std::sqrt(double(n)), -2 * std::numbers::pi * double(i * j) / double(n));
  for (Index i = 0; i < n; ++i) P(i, i) = std::polar(double(n - i), 0.4 * double(i));
  Matrix<C> A = F * P * F.adjoint();
  std::vector<double> s(n);
  singular_values(view(F), s);
  for (const double value : s) CHECK(value == doctest::Approx(1).epsilon(1e-13));
  std::vector<C> values(n);
  eigenvalues(view(A), values);
  for (Index i = 0; i < n; ++i) CHECK(std::abs(values[i] - P(i, i)) < 1e-13);
}

TEST_CASE_TEMPLATE("Hermitian matrices: ascending eigenvalues, and vectors that give the matrix back", T, double, C) {
  Vector<double> d(4);
  d << -2, 0.5, 1, 8;
  const Matrix<T> Q = rotation<T>(4, 9), A = Q * d.template cast<T>().asDiagonal() * Q.adjoint();
  Matrix<T> V = A, destroyed = A;
  std::vector<double> values(4), again(4);
  hermitian_eigen(view(V), values);
  hermitian_eigenvalues(view(destroyed), again);
  for (Index i = 0; i < 4; ++i) {
    CHECK(values[i] == doctest::Approx(d[i]).epsilon(1e-13));
    CHECK(again[i] == doctest::Approx(d[i]).epsilon(1e-13));
  }
  CHECK((V * d.template cast<T>().asDiagonal() * V.adjoint() - A).norm() < 1e-13);
}

TEST_CASE_TEMPLATE("steps along a manifold: tangents are skew, the Cayley step is the closed form and stays", T, double,
                   C) {
  const Index n = 9;
  const Matrix<T> M = rotation<T>(n, 21), G = numbers<T>(n, n, 22);
  const Matrix<T> A = manifold::tangent<T>(G, M);
  CHECK((A + A.adjoint()).norm() < 1e-14);
  CHECK((A - (G * M.adjoint() - M * G.adjoint())).norm() < 1e-14);
  // short steps are iterated, long ones solved
  for (const double eta : {1e-9, 1e-5, 1e-2, 1., 100.}) {
    CAPTURE(eta);
    const Matrix<T> half = T(eta / 2) * A;
    const Matrix<T> moved = M + manifold::cayley_change<T>(A, eta, M);
    CHECK(((one<T>(n) + half) * moved - (one<T>(n) - half) * M).norm() < 1e-13 * (1 + half.norm()));
    CHECK(isometry_defect<T>(moved) < 1e-13);
  }
  // dL = Re⟨G, change⟩ = −η/2 ‖A‖² to first order
  const double eta = 1e-6, change = std::real(G.cwiseProduct(manifold::cayley_change<T>(A, eta, M).conjugate()).sum());
  CHECK(change == doctest::Approx(-eta / 2 * A.squaredNorm()).epsilon(1e-5));
}

TEST_CASE_TEMPLATE("projection to a manifold, and blocks of both precisions", T, double, C) {
  constexpr bool unitary = std::is_same_v<T, C>;
  const Index n = 6;
  const Matrix<T> near = rotation<T>(n, 23) + 1e-3 * numbers<T>(n, n, 24), far = numbers<T>(n, n, 25);
  for (const Matrix<T>& start : {near, far}) {
    Matrix<T> M = start, expected = start;
    manifold::project(M);
    polar_factor(view(expected));
    CHECK((M - expected).norm() < 1e-13);
    std::vector<double> block(std::size_t((unitary ? 2 : 1) * n * n));
    manifold::store<T, double>(M, block);
    CHECK(Matrix<T>(manifold::load<T, double>(block, n)) == M);
    std::vector<float> rounded(block.size());
    manifold::store<T, float>(M, rounded);
    CHECK((Matrix<T>(manifold::load<T, float>(rounded, n)) - M).norm() < 1e-6);
    if constexpr (unitary) {
      CHECK(block[1] == M(1, 0).real());
      CHECK(block[std::size_t(n + 1)] == M(1, 0).imag());
    }
    bool right = false;
    manifold::with_numbers_of<double>(unitary ? Manifold::unitary : Manifold::orthogonal,
                                      [&]<class U>(U) { right = std::is_same_v<U, T>; });
    CHECK(right);
  }
}

TEST_CASE("a matrix with NaN is reported, not passed to LAPACK") {
  Matrix<double> A = Matrix<double>::Identity(3, 3);
  A(1, 2) = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> s(3);
  std::vector<C> values(3);
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { singular_values(view(A), s); }, [&] { eigenvalues(view(A), values); },
           [&] { hermitian_eigen(view(A), s); }, [&] { invert(view(A)); }, [&] { orthonormalise(view(A)); }}) {
    try {
      call();
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == Exit::diverged);
    }
  }
}

// Views convert to what reads, never to what writes, and never to another scalar.
static_assert(std::is_convertible_v<Mat<float>, CMat<float>> && std::is_convertible_v<Matrix<float>, CMat<float>>);
static_assert(std::is_convertible_v<Matrix<float>&, Mat<float>> &&
              !std::is_convertible_v<const Matrix<float>&, Mat<float>>);
static_assert(!std::is_convertible_v<CMat<float>, Mat<float>> && !std::is_convertible_v<Mat<float>, CMat<double>>);
static_assert(!std::is_convertible_v<Eigen::RowVectorXf, CMat<float>>);  // its numbers are not in one column
static_assert(!std::is_convertible_v<Matrix<float>, Mat<float>>);        // a temporary would be gone

TEST_CASE("views of matrices, of parts of them and of views are of the same numbers") {
  Matrix<double> A = Matrix<double>::Zero(4, 5);
  Mat<double> part = A.middleCols(1, 3);
  Mat<double> rows = rows_of(part, 2, 2);
  rows(0, 0) = 7;
  CHECK(A(2, 1) == 7);
  const CMat<double> read = rows, column = A.col(1);
  CHECK(read.data() == &A(2, 1));
  CHECK(read.outerStride() == 4);
  CHECK(column(2, 0) == 7);
  part = Matrix<double>::Ones(4, 3);  // copies numbers
  CHECK(A.sum() == 12);
  CHECK(Mat<double>().size() == 0);
}

namespace {

template <class T> double tolerance() {
  return 200 * double(std::numeric_limits<typename Eigen::NumTraits<T>::Real>::epsilon());
}

template <class T> Matrix<T> random(Index rows, Index cols, std::uint32_t seed) {
  return numbers<C>(rows, cols, seed).unaryExpr([](const C& x) {
    using Real = typename Eigen::NumTraits<T>::Real;
    if constexpr (Eigen::NumTraits<T>::IsComplex)
      return T(Real(x.real()), Real(x.imag()));
    else
      return T(Real(x.real()));
  });
}

}  // namespace

TEST_CASE_TEMPLATE("products, triangular solves and inverses", T, float, double, std::complex<float>, C) {
  const double close = tolerance<T>();
  const Matrix<T> A = random<T>(5, 7, 1), B = random<T>(7, 4, 2), Bt = B.transpose(), Ah = A.adjoint();
  const Matrix<T> AB = A.lazyProduct(B);
  Matrix<T> result(5, 4);
  for (const auto& operands : {std::pair<Operand<T>, Operand<T>>{A, B},
                               {adjoint(Ah), B},
                               {A, transposed(Bt)},
                               {adjoint(Ah), transposed(Bt)}}) {
    result.setConstant(T(std::numeric_limits<float>::quiet_NaN()));  // is not read
    multiply(operands.first, operands.second, view(result));
    CHECK(double((result - AB).norm()) < close);
    CHECK(product(operands.first, operands.second) == result);
    add_product(operands.first, operands.second, view(result), T(-3));
    CHECK(double((result + T(2) * AB).norm()) < close);
  }
  Matrix<T> source = Matrix<T>::Ones(8, 8), target = Matrix<T>::Ones(8, 8);
  source.topLeftCorner(5, 7) = A;
  CHECK(double((product(source.topLeftCorner(5, 7), B) - AB).norm()) < close);
  multiply(source.topLeftCorner(5, 7), B, view(target.bottomRightCorner(5, 4)));
  CHECK(double((target.bottomRightCorner(5, 4) - AB).norm()) < close);
  CHECK(target.topRows(3) == Matrix<T>::Ones(3, 8));

  Matrix<T> full = random<T>(6, 6, 3);
  full.diagonal().array() += T(4);
  const Matrix<T> lower = full.template triangularView<Eigen::Lower>(),
                  unit = full.template triangularView<Eigen::UnitLower>(), start = random<T>(6, 3, 4);
  Matrix<T> X = start;
  solve_triangular(Triangle::lower, full, view(X));  // what is above the diagonal is not read
  CHECK(double((lower.lazyProduct(X) - start).norm()) < close);
  X = start;
  solve_triangular(Triangle::unit_lower, adjoint(unit), view(X));
  CHECK(double((unit.adjoint().lazyProduct(X) - start).norm()) < close * double(X.norm()));
  Matrix<T> Y = start.transpose();
  solve_triangular_right(Triangle::upper, transposed(full), view(Y));
  const Matrix<T> upper_t = Matrix<T>(full.template triangularView<Eigen::Upper>()).transpose();
  CHECK(double((Y.lazyProduct(upper_t) - start.transpose()).norm()) < close);

  Matrix<T> inverse = full;
  invert(view(inverse));
  CHECK(double((inverse.lazyProduct(full) - one<T>(6)).norm()) < close);
}

TEST_CASE("shapes that do not fit and singular triangles are refused") {
  Matrix<double> A = numbers<double>(3, 4, 1), B = numbers<double>(3, 2, 2), result(3, 2), T = numbers<double>(3, 3, 3);
  CHECK_THROWS_AS(product(A, B), Error);
  CHECK_THROWS_WITH_AS(multiply(A, B, view(result)), "a product of 3 × 4 by 3 × 2 cannot be written to 3 × 2", Error);
  CHECK_THROWS_WITH_AS(solve_triangular(Triangle::lower, A, view(B)),
                       "a triangular matrix of 3 × 4 does not fit a right side of 3 × 2", Error);
  T(1, 1) = 0;
  CHECK_THROWS_WITH_AS(solve_triangular(Triangle::lower, T, view(B)),
                       "a triangular matrix is singular: its diagonal has a zero; lower the rate", Error);
  CHECK_THROWS_WITH_AS(invert(view(A)), "the inverse of a matrix of 3 × 4 cannot be computed: it must be square",
                       Error);
}
