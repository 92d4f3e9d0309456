// OpenBLAS made ready for concurrent callers.
#pragma once

#include <string>

#include <stiefel/export.hpp>

namespace stiefel {

/// The widest vector instructions that this CPU and its operating system offer, as far as BLAS kernels depend on them.
enum class VectorUnit { other, avx2, avx512 };
STIEFEL_API VectorUnit vector_unit_of_cpu();

/// Chooses OpenBLAS' kernels and sets it to one thread per call; throws Error when it is not the pthread flavor. Call
/// it before the first product and before other threads start. A CPU that OpenBLAS does not know gets the kernels for
/// its vector unit; OPENBLAS_CORETYPE, if set, decides.
STIEFEL_API void start_blas();
/// The refusal for a value of openblas_get_parallel() (0 serial, 1 pthread, 2 OpenMP), empty for 1.
STIEFEL_API std::string blas_refusal(int parallel);
/// The core whose kernels use the vector unit when those of `core` do not; empty when they do.
STIEFEL_API std::string better_blas_core(const std::string& core, VectorUnit unit);
/// What to do when the kernels in use do not fit this CPU; empty when they do.
STIEFEL_API std::string blas_warning();
/// The kernels in use, e.g. "SkylakeX", and the version and build options: part of a run's provenance.
STIEFEL_API std::string blas_core();
STIEFEL_API std::string blas_configuration();

}  // namespace stiefel
