// OpenBLAS from several threads at once.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <stiefel/matrix.hpp>
#include <thread>
#include <vector>
#include "sdk/blas.hpp"

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

TEST_CASE("the threads that OpenBLAS starts when it is loaded are gone") {
  start_blas();
  namespace fs = std::filesystem;
  const auto threads = [] {
    return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());
  };
  // A thread that has been joined may be listed for a moment.
  for (int waited = 0; waited < 10000 && threads() > 1; ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(threads() == 1);
}

TEST_CASE("only the pthread flavor is accepted, and its kernels are named") {
  CHECK(blas_refusal(1) == "");
  CHECK(blas_refusal(0) ==
        "OpenBLAS is loaded in its serial flavor and stiefel needs the pthread one, because the others give wrong "
        "products when several "
        "threads call them; install it with: apt-get install libopenblas0-pthread && update-alternatives --config "
        "libopenblas.so.0-$(uname -m)-linux-gnu");
  CHECK(blas_refusal(2).starts_with("OpenBLAS is loaded in its OpenMP flavor"));
  CHECK(!blas_core().empty());
  CHECK(blas_configuration().starts_with("OpenBLAS "));
}

TEST_CASE("kernels without the CPU's vector instructions are replaced, others stay") {
  for (const char* core : {"Prescott", "Nehalem", "Barcelona", "Sandybridge"}) {
    CHECK(better_blas_core(core, VectorUnit::avx512) == "SkylakeX");
    CHECK(better_blas_core(core, VectorUnit::avx2) == "Haswell");
    CHECK(better_blas_core(core, VectorUnit::other) == "");
  }
  CHECK(better_blas_core("Haswell", VectorUnit::avx512) == "SkylakeX");
  CHECK(better_blas_core("Zen", VectorUnit::avx2) == "");
  for (const char* core : {"SkylakeX", "Cooperlake", "SapphireRapids"})
    for (const VectorUnit unit : {VectorUnit::other, VectorUnit::avx2, VectorUnit::avx512})
      CHECK(better_blas_core(core, unit) == "");
}

TEST_CASE("the kernels that OpenBLAS chose for an unknown CPU are replaced unless OPENBLAS_CORETYPE is set") {
  const std::string chosen = blas_core();  // Prescott in the test unit.blas.unknown_cpu
  start_blas();
  if (std::getenv("OPENBLAS_CORETYPE")) {
    CHECK(blas_core() == chosen);
    CHECK(blas_warning().empty() == better_blas_core(chosen, vector_unit_of_cpu()).empty());
    if (!blas_warning().empty()) CHECK(blas_warning().find("unset OPENBLAS_CORETYPE") != std::string::npos);
  }
  ::unsetenv("OPENBLAS_CORETYPE");
  start_blas();
  CHECK(better_blas_core(blas_core(), vector_unit_of_cpu()) == "");
  CHECK(blas_warning() == "");
  CHECK(!std::getenv("OPENBLAS_CORETYPE"));
  const Matrix<double> A = numbers(150, 150, 1), B = numbers(150, 150, 2);
  CHECK((A * B - naive(A, B)).cwiseAbs().maxCoeff() < 1e-12);
}
