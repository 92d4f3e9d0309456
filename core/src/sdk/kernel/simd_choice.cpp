#include "sdk/kernel/simd_choice.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <stiefel/error.hpp>
#include <stiefel/product.hpp>

namespace stiefel {

void choose_simd_target() {
  const char* name = std::getenv("STIEFEL_SIMD");
  if (!name || !*name || select_product_target(name)) return;
  throw Error(fmt::format("STIEFEL_SIMD is {}, but this program and this CPU have {}; choose one of them or unset it",
                          name, fmt::join(product_targets(), ", ")));
}

}  // namespace stiefel
