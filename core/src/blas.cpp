// The only file that declares symbols of LAPACK and OpenBLAS' own functions. Drivers are asked for their workspace first (lwork = −1).
#include <fmt/format.h>

#include <algorithm>
#include <blas.hpp>
#include <stiefel/error.hpp>

extern "C" {
using Complex = std::complex<double>;
// The sizes at the end are Fortran's hidden lengths of the character arguments.
void dgesdd_(const char* job, const int* m, const int* n, double* A, const int* lda, double* s, double* U, const int* ldu, double* Vt,
             const int* ldvt, double* work, const int* lwork, int* iwork, int* info, std::size_t);
void zgesdd_(const char* job, const int* m, const int* n, Complex* A, const int* lda, double* s, Complex* U, const int* ldu, Complex* Vt,
             const int* ldvt, Complex* work, const int* lwork, double* rwork, int* iwork, int* info, std::size_t);
void dgeev_(const char* left, const char* right, const int* n, double* A, const int* lda, double* re, double* im, double* VL,
            const int* ldvl, double* VR, const int* ldvr, double* work, const int* lwork, int* info, std::size_t, std::size_t);
void zgeev_(const char* left, const char* right, const int* n, Complex* A, const int* lda, Complex* w, Complex* VL, const int* ldvl,
            Complex* VR, const int* ldvr, Complex* work, const int* lwork, double* rwork, int* info, std::size_t, std::size_t);
void dsyevd_(const char* job, const char* triangle, const int* n, double* A, const int* lda, double* w, double* work, const int* lwork,
             int* iwork, const int* liwork, int* info, std::size_t, std::size_t);
void openblas_set_num_threads(int threads);
int openblas_get_parallel();
char* openblas_get_corename();
char* openblas_get_config();
}

namespace stiefel {
namespace {

template <class M> void demand_finite(const M& A, const char* wanted) {
  if (!A.allFinite())
    throw Error(fmt::format("the {} of a matrix with NaN or Inf cannot be computed; lower the rate or clip the gradient", wanted),
                Exit::diverged);
}

void demand_success(const char* driver, int info) {
  if (info > 0)
    throw Error(fmt::format("LAPACK's {} did not converge (info = {}); the matrix is too badly scaled", driver, info), Exit::diverged);
  STIEFEL_ASSERT(info == 0);
}

/// Length of a leading dimension, which LAPACK wants ≥ 1.
int leading(Index rows) { return int(std::max<Index>(rows, 1)); }

/// LAPACK's gesdd. job 'N': values only; 'S': the first min(m, n) columns of U and rows of Vt too.
std::vector<double> gesdd(Matrix<double>& A, char job, Matrix<double>& U, Matrix<double>& Vt) {
  demand_finite(A, "singular values");
  const int m = int(A.rows()), n = int(A.cols()), k = std::min(m, n), lda = leading(m), ldu = leading(U.rows()), ldvt = leading(Vt.rows());
  std::vector<double> s(k);
  if (k == 0) return s;
  std::vector<int> integers(8 * k);
  int info = 0, size = -1;
  double asked = 0;
  dgesdd_(&job, &m, &n, A.data(), &lda, s.data(), U.data(), &ldu, Vt.data(), &ldvt, &asked, &size, integers.data(), &info, 1);
  demand_success("dgesdd", info);
  std::vector<double> work(size = int(asked));
  dgesdd_(&job, &m, &n, A.data(), &lda, s.data(), U.data(), &ldu, Vt.data(), &ldvt, work.data(), &size, integers.data(), &info, 1);
  demand_success("dgesdd", info);
  return s;
}

void sort_by_modulus(std::vector<std::complex<double>>& values) {
  // The moduli of a conjugate pair may differ in the last bit of std::abs only if its arguments do, and those are exact negatives.
  std::stable_sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return std::abs(a) > std::abs(b); });
}

}  // namespace

std::string blas_refusal(int parallel) {
  if (parallel == 1) return {};
  return fmt::format(
      "OpenBLAS is loaded in its {} flavour and stiefel needs the pthread one, because the others give wrong products when several threads "
      "call "
      "them; mend it with: apt-get install libopenblas0-pthread && update-alternatives --config libopenblas.so.0-x86_64-linux-gnu",
      parallel == 0 ? "serial" : "OpenMP");
}

void start_blas() {
  const std::string refusal = blas_refusal(openblas_get_parallel());
  if (!refusal.empty()) throw Error(refusal, Exit::usage);
  openblas_set_num_threads(1);
}

std::string blas_core() { return openblas_get_corename(); }
std::string blas_configuration() { return openblas_get_config(); }

std::vector<double> singular_values(Matrix<double> A) {
  Matrix<double> none;
  return gesdd(A, 'N', none, none);
}

Svd singular_value_decomposition(Matrix<double> A) {
  const Index k = std::min(A.rows(), A.cols());
  Svd svd{Matrix<double>(A.rows(), k), Matrix<double>(k, A.cols()), {}};
  svd.s = gesdd(A, 'S', svd.U, svd.Vt);
  return svd;
}

std::vector<double> singular_values(ComplexMatrix A) {
  demand_finite(A, "singular values");
  const int m = int(A.rows()), n = int(A.cols()), k = std::min(m, n), one = 1;
  std::vector<double> s(k), real(7 * std::max(k, 1));
  if (k == 0) return s;
  std::vector<int> integers(8 * k);
  int info = 0, size = -1;
  std::complex<double> asked;
  zgesdd_("N", &m, &n, A.data(), &m, s.data(), nullptr, &one, nullptr, &one, &asked, &size, real.data(), integers.data(), &info, 1);
  demand_success("zgesdd", info);
  std::vector<std::complex<double>> work(size = int(asked.real()));
  zgesdd_("N", &m, &n, A.data(), &m, s.data(), nullptr, &one, nullptr, &one, work.data(), &size, real.data(), integers.data(), &info, 1);
  demand_success("zgesdd", info);
  return s;
}

std::vector<std::complex<double>> eigenvalues(Matrix<double> A) {
  STIEFEL_ASSERT(A.rows() == A.cols());
  demand_finite(A, "eigenvalues");
  const int n = int(A.rows()), one = 1;
  std::vector<std::complex<double>> values(n);
  if (n == 0) return values;
  std::vector<double> re(n), im(n);
  int info = 0, size = -1;
  double asked = 0;
  dgeev_("N", "N", &n, A.data(), &n, re.data(), im.data(), nullptr, &one, nullptr, &one, &asked, &size, &info, 1, 1);
  demand_success("dgeev", info);
  std::vector<double> work(size = int(asked));
  dgeev_("N", "N", &n, A.data(), &n, re.data(), im.data(), nullptr, &one, nullptr, &one, work.data(), &size, &info, 1, 1);
  demand_success("dgeev", info);
  for (int i = 0; i < n; ++i) values[i] = {re[i], im[i]};
  sort_by_modulus(values);
  return values;
}

std::vector<std::complex<double>> eigenvalues(ComplexMatrix A) {
  STIEFEL_ASSERT(A.rows() == A.cols());
  demand_finite(A, "eigenvalues");
  const int n = int(A.rows()), one = 1;
  std::vector<std::complex<double>> values(n);
  if (n == 0) return values;
  std::vector<double> real(2 * n);
  int info = 0, size = -1;
  std::complex<double> asked;
  zgeev_("N", "N", &n, A.data(), &n, values.data(), nullptr, &one, nullptr, &one, &asked, &size, real.data(), &info, 1, 1);
  demand_success("zgeev", info);
  std::vector<std::complex<double>> work(size = int(asked.real()));
  zgeev_("N", "N", &n, A.data(), &n, values.data(), nullptr, &one, nullptr, &one, work.data(), &size, real.data(), &info, 1, 1);
  demand_success("zgeev", info);
  sort_by_modulus(values);
  return values;
}

std::vector<double> symmetric_eigenvalues(Matrix<double> A) {
  STIEFEL_ASSERT(A.rows() == A.cols());
  demand_finite(A, "eigenvalues");
  const int n = int(A.rows());
  std::vector<double> values(n);
  if (n == 0) return values;
  int info = 0, size = -1, integer_size = -1, integers_asked = 0;
  double asked = 0;
  dsyevd_("N", "L", &n, A.data(), &n, values.data(), &asked, &size, &integers_asked, &integer_size, &info, 1, 1);
  demand_success("dsyevd", info);
  std::vector<double> work(size = int(asked));
  std::vector<int> integers(integer_size = integers_asked);
  dsyevd_("N", "L", &n, A.data(), &n, values.data(), work.data(), &size, integers.data(), &integer_size, &info, 1, 1);
  demand_success("dsyevd", info);
  return values;
}

}  // namespace stiefel
