/// NumPy's .npy files: arrays of up to four dimensions of floating-point numbers or integers, little-endian or
/// big-endian, in C or Fortran order.
///
///   "\x93NUMPY", version, length of the header, {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }, numbers
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

struct Npy {
  std::vector<std::size_t> shape;
  std::vector<double> values;  ///< last index fastest
};

/// Throws Error(Exit::data) that names the file. Needs at most 8 times the memory of the file, or 16 times in
/// Fortran order.
STIEFEL_API Npy parse_npy(std::span<const std::byte> bytes, const std::string& file);
STIEFEL_API Npy read_npy(const std::filesystem::path& path);
/// The lengths of `count` padded sequences, integers from 1 to `longest`. Throws Error(Exit::data) that names the file.
STIEFEL_API std::vector<std::size_t> read_lengths(const std::filesystem::path& path, std::size_t count,
                                                  std::size_t longest);

}  // namespace stiefel
