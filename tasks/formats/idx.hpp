/// IDX files, the format of MNIST: an array of bytes behind a header of big-endian numbers, plain or compressed by
/// gzip.
///
///   0, 0, type (8: unsigned byte), number of dimensions d, then d sizes of 4 bytes, then the values, last index
///     fastest
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stiefel {

struct Idx {
  std::vector<std::int64_t> sizes;
  std::vector<std::uint8_t> values;
};

/// The array of `dimensions` dimensions in the file. Error(Exit::data) that names the file, what is wrong with it and
/// ends with `mend`. A file's header cannot make it take more memory than the file holds, nor more than 2³⁰ values.
Idx read_idx(const std::string& path, std::size_t dimensions, const std::string& mend);

}  // namespace stiefel
