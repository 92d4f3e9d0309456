// Reads NumPy's .npy files: one or two dimensions of float32 or float64, little-endian, in C or Fortran order.
//
// File: "\x93NUMPY", version, length of the header, header {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }, numbers.
#pragma once

#include <filesystem>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

/// A vector of length n becomes n × 1. Anything else that the file may hold throws Error (Exit::data) naming the file.
STIEFEL_API Matrix<double> read_npy(const std::filesystem::path& file);

}  // namespace stiefel
