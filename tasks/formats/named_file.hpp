/// A file of data: its bytes, and how it is named when something in it is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stiefel {

struct NamedFile {
  std::string path, mend;  ///< mend: what the user can do, a sentence; may be empty

  /// Throws Error(Exit::data): "path: what. mend".
  [[noreturn]] void refuse(std::string_view what) const;
};

/// All bytes of the file; refused when it cannot be read, is not a file or is larger than `largest`.
std::string bytes_of(const NamedFile& file, std::uint64_t largest = std::uint64_t(1) << 32);

}  // namespace stiefel
