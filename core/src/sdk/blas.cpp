// The only file that declares OpenBLAS' own functions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stiefel/error.hpp>
#include "sdk/blas.hpp"

extern "C" {
void openblas_set_num_threads(int threads);
int openblas_get_parallel();
char* openblas_get_corename();
char* openblas_get_config();
// Not in OpenBLAS' header. The first two choose the kernels, which happens when the library is loaded; builds for a
// single CPU lack them. The third ends the threads that loading starts: until they sleep they poll, for some 50 ms each.
[[gnu::weak]] void gotoblas_dynamic_quit();
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] int blas_thread_shutdown_();
}

namespace stiefel {
namespace {

constexpr const char* variable = "OPENBLAS_CORETYPE";

void choose_kernels(const std::string& core) {
  if (!gotoblas_dynamic_quit || !gotoblas_dynamic_init) return;
  ::setenv(variable, core.c_str(), 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  ::unsetenv(variable);
}

}  // namespace

std::string blas_refusal(int parallel) {
  if (parallel == 1) return {};
  return fmt::format(
      "OpenBLAS is loaded in its {} flavor and stiefel needs the pthread one, because the others give wrong products "
      "when several threads call them; install it with: apt-get install libopenblas0-pthread && update-alternatives "
      "--config libopenblas.so.0-$(uname -m)-linux-gnu",
      parallel == 0 ? "serial" : "OpenMP");
}

VectorUnit vector_unit_of_cpu() {
#ifdef __x86_64__
  __builtin_cpu_init();
  const auto avx512 = [] {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
  };
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return VectorUnit::other;
  return avx512() ? VectorUnit::avx512 : VectorUnit::avx2;
#else
  return VectorUnit::other;
#endif
}

std::string better_blas_core(const std::string& core, VectorUnit unit) {
  static constexpr std::array with_avx512{"SkylakeX", "Cooperlake", "SapphireRapids"},
      with_avx2{"Haswell", "Zen", "Excavator"};
  const auto among = [&](const auto& cores) { return std::ranges::find(cores, core) != cores.end(); };
  if (unit == VectorUnit::avx512 && !among(with_avx512)) return "SkylakeX";
  if (unit == VectorUnit::avx2 && !among(with_avx512) && !among(with_avx2)) return "Haswell";
  return {};
}

void start_blas() {
  const std::string refusal = blas_refusal(openblas_get_parallel());
  if (!refusal.empty()) throw Error(refusal, Exit::usage);
  const std::string better = better_blas_core(blas_core(), vector_unit_of_cpu());
  if (!better.empty() && !std::getenv(variable)) choose_kernels(better);
  openblas_set_num_threads(1);
  if (blas_thread_shutdown_) blas_thread_shutdown_();
}

std::string blas_warning() {
  const std::string better = better_blas_core(blas_core(), vector_unit_of_cpu());
  if (better.empty()) return {};
  return fmt::format(
      "OpenBLAS uses its {} kernels, which leave part of this CPU's vector unit idle; {} for its {} kernels",
      blas_core(),
      std::getenv(variable) ? fmt::format("unset {}", variable) : fmt::format("set {}={}", variable, better), better);
}

std::string blas_core() { return openblas_get_corename(); }
std::string blas_configuration() { return openblas_get_config(); }

}  // namespace stiefel
