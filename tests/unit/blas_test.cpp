// OpenBLAS from several threads at once.
#include <doctest/doctest.h>

#include <blas.hpp>
#include <cmath>
#include <stiefel/matrix.hpp>
#include <thread>
#include <vector>

using namespace stiefel;

namespace {

/// Entries in [−1, 1] from a linear congruence: the same everywhere.
Matrix<double> numbers(Index rows, Index cols, std::uint32_t seed) {
  Matrix<double> A(rows, cols);
  for (double& a : A.reshaped()) a = double(std::int32_t(seed = seed * 1664525u + 1013904223u)) / 2147483648.0;
  return A;
}

Matrix<double> naive(const Matrix<double>& A, const Matrix<double>& B) { return A.lazyProduct(B); }

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
          if (!((A * B - expected).cwiseAbs().maxCoeff() < 1e-12)) ++wrong[worker];
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
