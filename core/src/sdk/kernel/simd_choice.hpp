// The SIMD target of the whole program, chosen by the environment.
#pragma once

#include <stiefel/export.hpp>

namespace stiefel {

/// Obeys the environment variable STIEFEL_SIMD, a name of product_targets() such as AVX2; nothing happens when it is
/// not set or empty. It rules the packed products and the elementwise loops; OpenBLAS obeys OPENBLAS_CORETYPE. Throws
/// Error for a target that this CPU or build lacks.
STIEFEL_API void choose_simd_target();

}  // namespace stiefel
