/// Data compressed by zlib.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tasks/formats/named_file.hpp"

struct gzFile_s;

namespace stiefel {

/// At most `most` bytes, which must be all. `window`: 15 for data with a header of zlib, −15 for data without one.
std::string inflate_all(std::string_view compressed, int window, std::size_t most, const NamedFile& file);

/// A file or a pipe, decompressed while it is read if it was compressed by gzip.
class GzipFile {
 public:
  explicit GzipFile(NamedFile name);

  const NamedFile& name() const { return name_; }
  /// Up to `count` bytes, fewer only at the end. Refuses what cannot be read or decompressed.
  std::size_t read(void* bytes, std::size_t count);
  /// Appends up to `count` bytes; false at the end.
  bool append(std::string& bytes, std::size_t count);

 private:
  NamedFile name_;
  std::unique_ptr<gzFile_s, int (*)(gzFile_s*)> file_;
};

/// All bytes of a file, decompressed if it was compressed by gzip.
std::string text_of(const NamedFile& file);

}  // namespace stiefel
