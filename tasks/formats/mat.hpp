/// MATLAB files of version 5 to 7 (not 7.3, which is HDF5): those variables that are cells of two-dimensional numeric
/// arrays.
///
///   128 bytes: text, version 0x0100, "IM" or "MI" by the byte order; then elements: type, size (4 bytes each), data,
///     padding to 8 bytes.
///   Up to four bytes of data share 8 bytes with their type and size. A variable is an element of type 14 (matrix),
///     alone or compressed
///   by zlib in one of type 15, that consists of elements again: flags and class, sizes, name, then the cells (each a
///     matrix) or numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/formats/named_file.hpp"

namespace stiefel {

/// Numbers as they are stored, whatever class they have in MATLAB: a matrix of doubles that are all 0 or 1 is stored as
/// bytes.
struct MatArray {
  std::int64_t rows = 0, columns = 0;
  std::uint32_t type = 0;  ///< of the element
  bool big_endian = false;
  std::string stored;  ///< column by column

  double at(std::int64_t row, std::int64_t column) const;
};
using MatCell = std::vector<MatArray>;

/// The cells named `names`, in this order. Error(Exit::data) when one is not there or anything else, and for a damaged
/// file. Other variables are passed over. A file takes no more memory than a few times what it holds, decompressed at
/// most 2²⁸ bytes.
std::vector<MatCell> read_mat_cells(std::string_view bytes, const std::vector<std::string>& names,
                                    const NamedFile& file);

}  // namespace stiefel
