// The only file that declares OpenBLAS' own functions.
#include <fmt/format.h>

#include <blas.hpp>
#include <stiefel/error.hpp>

extern "C" {
void openblas_set_num_threads(int threads);
int openblas_get_parallel();
char* openblas_get_corename();
char* openblas_get_config();
}

namespace stiefel {
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

}  // namespace stiefel
