// The only file that declares symbols of LAPACK; Eigen declares those of BLAS. Drivers are asked for their workspace
// first (lwork = −1).
#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <stiefel/error.hpp>
#include <stiefel/linear_algebra.hpp>
#include <vector>

#include "sdk/require.hpp"

using C = std::complex<double>;
using F = std::complex<float>;
extern "C" {
// The sizes at the end are Fortran's hidden lengths of the character arguments.
#define STIEFEL_LAPACK_OF_ALL(T, prefix)                                                                            \
  void prefix##getrf_(const int* m, const int* n, T* A, const int* lda, int* pivots, int* info);                    \
  void prefix##getri_(const int* n, T* A, const int* lda, const int* pivots, T* work, const int* lwork, int* info); \
  void prefix##gesv_(const int* n, const int* right, T* A, const int* lda, int* pivots, T* B, const int* ldb,       \
                     int* info);
STIEFEL_LAPACK_OF_ALL(float, s)
STIEFEL_LAPACK_OF_ALL(double, d)
STIEFEL_LAPACK_OF_ALL(F, c)
STIEFEL_LAPACK_OF_ALL(C, z)
#undef STIEFEL_LAPACK_OF_ALL
#define STIEFEL_LAPACK(T, prefix, orthogonal)                                                                          \
  void prefix##geqrf_(const int* m, const int* n, T* A, const int* lda, T* tau, T* work, const int* lwork, int* info); \
  void orthogonal##gqr_(const int* m, const int* n, const int* k, T* A, const int* lda, const T* tau, T* work,         \
                        const int* lwork, int* info);
STIEFEL_LAPACK(double, d, dor)
STIEFEL_LAPACK(C, z, zun)
#undef STIEFEL_LAPACK
void dgesdd_(const char* job, const int* m, const int* n, double* A, const int* lda, double* s, double* U,
             const int* ldu, double* Vt, const int* ldvt, double* work, const int* lwork, int* iwork, int* info,
             std::size_t);
void zgesdd_(const char* job, const int* m, const int* n, C* A, const int* lda, double* s, C* U, const int* ldu, C* Vt,
             const int* ldvt, C* work, const int* lwork, double* rwork, int* iwork, int* info, std::size_t);
void dgeev_(const char* left, const char* right, const int* n, double* A, const int* lda, double* re, double* im,
            double* VL, const int* ldvl, double* VR, const int* ldvr, double* work, const int* lwork, int* info,
            std::size_t, std::size_t);
void zgeev_(const char* left, const char* right, const int* n, C* A, const int* lda, C* w, C* VL, const int* ldvl,
            C* VR, const int* ldvr, C* work, const int* lwork, double* rwork, int* info, std::size_t, std::size_t);
void dsyevd_(const char* job, const char* triangle, const int* n, double* A, const int* lda, double* w, double* work,
             const int* lwork, int* iwork, const int* liwork, int* info, std::size_t, std::size_t);
void zheevd_(const char* job, const char* triangle, const int* n, C* A, const int* lda, double* w, C* work,
             const int* lwork, double* rwork, const int* lrwork, int* iwork, const int* liwork, int* info, std::size_t,
             std::size_t);
}

namespace stiefel {
namespace {

template <class T> constexpr bool real = std::is_same_v<T, double>;

/// Eigen declares BLAS's routines for complex numbers with pointers to their real parts.
template <class T> auto* raw(T* numbers) {
  using Real = typename Eigen::NumTraits<std::remove_const_t<T>>::Real;
  return reinterpret_cast<std::conditional_t<std::is_const_v<T>, const Real*, Real*>>(numbers);
}

int leading(Index stride) { return int(std::max<Index>(stride, 1)); }

/// What LAPACK wants to know of a matrix.
template <class T> struct View {
  explicit View(Mat<T> A)
      : m(int(A.rows())), n(int(A.cols())), k(std::min(m, n)), lda(leading(A.outerStride())), data(A.data()) {}
  int m, n, k, lda;
  T* data;
};

template <class T> View<T> finite(Mat<T> A, const char* wanted) {
  if (!A.allFinite())
    throw Error(
        fmt::format("the {} of a matrix with NaN or Inf cannot be computed; lower the rate or clip the gradient",
                    wanted),
        Exit::diverged);
  return View<T>(A);
}

template <class T> View<T> finite_square(Mat<T> A, const char* wanted) {
  require(A.rows() == A.cols(), "the {} of a matrix of {} × {} cannot be computed: it must be square", wanted, A.rows(),
          A.cols());
  return finite(A, wanted);
}

void demand_success(const char* driver, int info) {
  if (info > 0)
    throw Error(fmt::format("LAPACK's {} did not converge (info = {}); the matrix is too badly scaled", driver, info),
                Exit::diverged);
  STIEFEL_ASSERT(info == 0);
}

void demand_regular(int info) {
  if (info > 0)
    throw Error(fmt::format("a matrix to be inverted is singular: pivot {} is zero; lower the rate", info),
                Exit::diverged);
  STIEFEL_ASSERT(info == 0);
}

/// The routines of a scalar type.
template <class T> struct Routines;
#define STIEFEL_ROUTINES(T, prefix)               \
  template <> struct Routines<T> {                \
    static constexpr auto gemm = prefix##gemm_;   \
    static constexpr auto trsm = prefix##trsm_;   \
    static constexpr auto getrf = prefix##getrf_; \
    static constexpr auto getri = prefix##getri_; \
    static constexpr auto gesv = prefix##gesv_;   \
  };
STIEFEL_ROUTINES(float, s)
STIEFEL_ROUTINES(double, d)
STIEFEL_ROUTINES(F, c)
STIEFEL_ROUTINES(C, z)
#undef STIEFEL_ROUTINES

template <class T> void gemm(T alpha, const Operand<T>& A, const Operand<T>& B, T beta, Mat<T> result) {
  require(A.cols() == B.rows() && result.rows() == A.rows() && result.cols() == B.cols(),
          "a product of {} × {} by {} × {} cannot be written to {} × {}", A.rows(), A.cols(), B.rows(), B.cols(),
          result.rows(), result.cols());
  const int m = int(A.rows()), n = int(B.cols()), k = int(A.cols()), lda = leading(A.matrix.outerStride()),
            ldb = leading(B.matrix.outerStride()), ldc = leading(result.outerStride());
  Routines<T>::gemm(&A.form, &B.form, &m, &n, &k, raw(&alpha), raw(A.matrix.data()), &lda, raw(B.matrix.data()), &ldb,
                    raw(&beta), raw(result.data()), &ldc);
}

template <class T> void trsm(char side, Triangle triangle, const Operand<T>& A, Mat<T> B) {
  const Index n = side == 'L' ? B.rows() : B.cols();
  require(A.rows() == n && A.cols() == n, "a triangular matrix of {} × {} does not fit a right side of {} × {}",
          A.rows(), A.cols(), B.rows(), B.cols());
  const bool unit = triangle == Triangle::unit_lower || triangle == Triangle::unit_upper;
  if (!unit && (A.matrix.diagonal().array() == T(0)).any())
    throw Error("a triangular matrix is singular: its diagonal has a zero; lower the rate", Exit::diverged);
  const char part = triangle == Triangle::lower || triangle == Triangle::unit_lower ? 'L' : 'U',
             diagonal = unit ? 'U' : 'N';
  const int rows = int(B.rows()), cols = int(B.cols()), lda = leading(A.matrix.outerStride()),
            ldb = leading(B.outerStride());
  const T one(1);
  Routines<T>::trsm(&side, &part, &A.form, &diagonal, &rows, &cols, raw(&one), raw(A.matrix.data()), &lda,
                    raw(B.data()), &ldb);
}

/// Calls driver(work, lwork) twice: for the length of the workspace, then with it.
template <class T, class F> void with_workspace(F&& driver) {
  T asked{};
  driver(&asked, -1);
  std::vector<T> work(std::size_t(std::max(1.0, double(std::real(asked)))));
  driver(work.data(), int(work.size()));
}

template <class V> void require_values(std::span<V> values, Index count) {
  require(Index(values.size()) == count, "the output has room for {} values, but there are {}", values.size(), count);
}

/// job 'N': values only; 'S': the first k columns of U and rows of Vh too.
template <class T> void gesdd(char job, const View<T>& A, std::span<double> s, const View<T>& U, const View<T>& Vh) {
  require_values(s, A.k);
  if (A.k == 0) return;
  std::vector<int> integers(std::size_t(8 * A.k));
  std::vector<double> reals(real<T> ? 1
                                    : std::size_t(A.k) * std::max(5 * A.k + 7, 2 * std::max(A.m, A.n) + 2 * A.k + 1));
  int info = 0;
  with_workspace<T>([&](T* work, int size) {
    if constexpr (real<T>)
      dgesdd_(&job, &A.m, &A.n, A.data, &A.lda, s.data(), U.data, &U.lda, Vh.data, &Vh.lda, work, &size,
              integers.data(), &info, 1);
    else
      zgesdd_(&job, &A.m, &A.n, A.data, &A.lda, s.data(), U.data, &U.lda, Vh.data, &Vh.lda, work, &size, reals.data(),
              integers.data(), &info, 1);
    demand_success("gesdd", info);
  });
}

template <class T> void evd(char job, const View<T>& A, std::span<double> values) {
  require_values(values, A.n);
  if (A.n == 0) return;
  std::vector<int> integers(std::size_t(5 * A.n + 3));
  std::vector<double> reals(real<T> ? 1 : std::size_t(1 + 5 * A.n + 2 * A.n * A.n));
  const int integers_size = int(integers.size()), reals_size = int(reals.size());
  int info = 0;
  with_workspace<T>([&](T* work, int size) {
    if constexpr (real<T>)
      dsyevd_(&job, "L", &A.n, A.data, &A.lda, values.data(), work, &size, integers.data(), &integers_size, &info, 1,
              1);
    else
      zheevd_(&job, "L", &A.n, A.data, &A.lda, values.data(), work, &size, reals.data(), &reals_size, integers.data(),
              &integers_size, &info, 1, 1);
    demand_success("syevd", info);
  });
}

}  // namespace

template <class T> void multiply(Given<Operand<T>> A, Given<Operand<T>> B, Mat<T> result) {
  gemm(T(1), A, B, T(0), result);
}
template <class T> void add_product(Given<Operand<T>> A, Given<Operand<T>> B, Mat<T> result, Given<T> factor) {
  gemm(factor, A, B, T(1), result);
}

template <class T> void solve_triangular(Triangle triangle, Given<Operand<T>> A, Mat<T> B) {
  trsm('L', triangle, A, B);
}
template <class T> void solve_triangular_right(Triangle triangle, Given<Operand<T>> A, Mat<T> B) {
  trsm('R', triangle, A, B);
}

template <class T> void invert(Mat<T> matrix) {
  const View<T> A = finite_square(matrix, "inverse");
  if (A.n == 0) return;
  std::vector<int> pivots(std::size_t(A.n));
  int info = 0;
  Routines<T>::getrf(&A.n, &A.n, A.data, &A.lda, pivots.data(), &info);
  demand_regular(info);
  with_workspace<T>([&](T* work, int size) {
    Routines<T>::getri(&A.n, A.data, &A.lda, pivots.data(), work, &size, &info);
    demand_regular(info);
  });
}

template <class T> void solve(Mat<T> matrix, Mat<T> right) {
  const View<T> A = finite_square(matrix, "inverse"), B = finite(right, "solution");
  require(B.m == A.n, "a matrix of {} × {} does not fit a right side of {} × {}", A.m, A.n, B.m, B.n);
  if (A.n == 0 || B.n == 0) return;
  std::vector<int> pivots(std::size_t(A.n));
  int info = 0;
  Routines<T>::gesv(&A.n, &B.n, A.data, &A.lda, pivots.data(), B.data, &B.lda, &info);
  demand_regular(info);
}

template <class T> void orthonormalise(Mat<T> matrix) {
  const View<T> A = finite(matrix, "QR factors");
  require(A.m >= A.n, "a matrix of {} × {} cannot have orthonormal columns", A.m, A.n);
  if (A.n == 0) return;
  std::vector<T> tau(std::size_t(A.n));
  int info = 0;
  with_workspace<T>([&](T* work, int size) {
    if constexpr (real<T>)
      dgeqrf_(&A.m, &A.n, A.data, &A.lda, tau.data(), work, &size, &info);
    else
      zgeqrf_(&A.m, &A.n, A.data, &A.lda, tau.data(), work, &size, &info);
    demand_success("geqrf", info);
  });
  // LAPACK's R has a real diagonal, of either sign.
  const Vector<double> diagonal = matrix.diagonal().real();
  with_workspace<T>([&](T* work, int size) {
    if constexpr (real<T>)
      dorgqr_(&A.m, &A.n, &A.n, A.data, &A.lda, tau.data(), work, &size, &info);
    else
      zungqr_(&A.m, &A.n, &A.n, A.data, &A.lda, tau.data(), work, &size, &info);
    demand_success("orgqr", info);
  });
  for (Index j = 0; j < matrix.cols(); ++j)
    if (diagonal[j] < 0) matrix.col(j) = -matrix.col(j);
}

template <class T> double isometry_defect(Given<CMat<T>> A) {
  Matrix<T> defect = product(adjoint(A), A);
  defect.diagonal().array() -= T(1);
  return defect.norm();
}

template <class T> void polar_factor(Mat<T> A) {
  const Index n = A.cols();
  require(A.rows() >= n, "a matrix of {} × {} cannot have orthonormal columns", A.rows(), n);
  Matrix<T> U(A.rows(), n), Vh(n, n);
  std::vector<double> values(static_cast<std::size_t>(n));
  singular_value_decomposition(A, view(U), values, view(Vh));
  multiply<T>(U, Vh, A);
}

template <class T> void hermitian_eigen(Mat<T> A, std::span<double> values) {
  evd('V', finite_square(A, "eigenvectors"), values);
}
template <class T> void hermitian_eigenvalues(Mat<T> A, std::span<double> values) {
  evd('N', finite_square(A, "eigenvalues"), values);
}

template <class T> void singular_value_decomposition(Mat<T> A, Mat<T> U, std::span<double> s, Mat<T> Vh) {
  const View<T> a = finite(A, "singular values"), u(U), vh(Vh);
  require(u.m == a.m && u.n == a.k && vh.m == a.k && vh.n == a.n,
          "the factors of {0} × {1} are U: {0} × {2} and Vh: {2} × {1}, not {3} × {4} and {5} × {6}", a.m, a.n, a.k,
          u.m, u.n, vh.m, vh.n);
  gesdd('S', a, s, u, vh);
}

template <class T> void singular_values(Mat<T> A, std::span<double> s) {
  T none{};
  const View<T> nothing(mat(&none, 1, 1, 1));
  gesdd('N', finite(A, "singular values"), s, nothing, nothing);
}

template <class T> void eigenvalues(Mat<T> matrix, std::span<C> values) {
  const View<T> A = finite_square(matrix, "eigenvalues");
  require_values(values, A.n);
  if (A.n == 0) return;
  std::vector<double> re(std::size_t(2 * A.n)), im(std::size_t(A.n));
  const int one = 1;
  int info = 0;
  with_workspace<T>([&](T* work, int size) {
    if constexpr (real<T>)
      dgeev_("N", "N", &A.n, A.data, &A.lda, re.data(), im.data(), nullptr, &one, nullptr, &one, work, &size, &info, 1,
             1);
    else
      zgeev_("N", "N", &A.n, A.data, &A.lda, values.data(), nullptr, &one, nullptr, &one, work, &size, re.data(), &info,
             1, 1);
    demand_success("geev", info);
  });
  if constexpr (real<T>)
    for (int i = 0; i < A.n; ++i) values[i] = {re[i], im[i]};
  // The moduli of a conjugate pair may differ in the last bit of std::abs only if its arguments do, and those are exact
  // negatives.
  std::stable_sort(values.begin(), values.end(), [](const C& a, const C& b) { return std::abs(a) > std::abs(b); });
}

#define STIEFEL_INSTANTIATE(T)                                                                       \
  template STIEFEL_API void orthonormalise(Mat<T>);                                                  \
  template STIEFEL_API void hermitian_eigen(Mat<T>, std::span<double>);                              \
  template STIEFEL_API void hermitian_eigenvalues(Mat<T>, std::span<double>);                        \
  template STIEFEL_API void singular_value_decomposition(Mat<T>, Mat<T>, std::span<double>, Mat<T>); \
  template STIEFEL_API void singular_values(Mat<T>, std::span<double>);                              \
  template STIEFEL_API double isometry_defect<T>(CMat<T>);                                           \
  template STIEFEL_API void polar_factor(Mat<T>);                                                    \
  template STIEFEL_API void eigenvalues(Mat<T>, std::span<C>);
STIEFEL_INSTANTIATE(double)
STIEFEL_INSTANTIATE(C)
#undef STIEFEL_INSTANTIATE
#define STIEFEL_INSTANTIATE(T)                                                       \
  template STIEFEL_API void multiply<T>(Operand<T>, Operand<T>, Mat<T>);             \
  template STIEFEL_API void add_product<T>(Operand<T>, Operand<T>, Mat<T>, T);       \
  template STIEFEL_API void solve_triangular<T>(Triangle, Operand<T>, Mat<T>);       \
  template STIEFEL_API void solve_triangular_right<T>(Triangle, Operand<T>, Mat<T>); \
  template STIEFEL_API void invert(Mat<T>);                                          \
  template STIEFEL_API void solve(Mat<T>, Mat<T>);
STIEFEL_INSTANTIATE(float)
STIEFEL_INSTANTIATE(double)
STIEFEL_INSTANTIATE(F)
STIEFEL_INSTANTIATE(C)

}  // namespace stiefel
