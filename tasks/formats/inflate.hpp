/// Data compressed by zlib.
#pragma once

#include <string>
#include <string_view>

#include "tasks/formats/named_file.hpp"

namespace stiefel {

/// At most `most` bytes, which must be all. `window`: 15 for data with a header of zlib, −15 for data without one.
std::string inflate_all(std::string_view compressed, int window, std::size_t most, const NamedFile& file);

/// All bytes of a file, decompressed if it was compressed by gzip.
std::string text_of(const NamedFile& file);

}  // namespace stiefel
