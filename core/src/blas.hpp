// OpenBLAS made ready for concurrent callers.
#pragma once

#include <string>

#include <stiefel/export.hpp>

namespace stiefel {

/// Sets OpenBLAS to one thread per call; throws Error when it is not the pthread flavour. Call it before the first product.
STIEFEL_API void start_blas();
/// The refusal for a value of openblas_get_parallel() (0 serial, 1 pthread, 2 OpenMP), empty for 1.
STIEFEL_API std::string blas_refusal(int parallel);
/// The kernel set in use, e.g. "SkylakeX", and the version and build options: part of a run's provenance.
STIEFEL_API std::string blas_core();
STIEFEL_API std::string blas_configuration();

}  // namespace stiefel
