/// Reads result files: attributes, texts and arrays by path.
///
/// The file is not trusted: types and sizes are checked before memory is allocated, and every fault in it is Error
/// (Exit::damaged).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel {

namespace hdf5 {
class Group;
}

/// Row-major; complex numbers are two doubles, with a last axis of length 2.
struct Array {
  std::vector<double> values;
  std::vector<std::uint64_t> shape;
};

class STIEFEL_API ResultReader {
 public:
  /// Throws Error if there is no such file, or if it has a later format.
  explicit ResultReader(const std::filesystem::path& path);
  ~ResultReader();

  bool exists(const std::string& path) const;
  bool is_group(const std::string& path) const;
  /// Names in a group, in the order in which they were made.
  std::vector<std::string> children(const std::string& group) const;

  std::vector<std::string> attributes(const std::string& path) const;
  bool has_attribute(const std::string& path, const std::string& name) const;
  std::string text_attribute(const std::string& path, const std::string& name) const;
  double number_attribute(const std::string& path, const std::string& name) const;

  std::vector<std::uint64_t> shape(const std::string& path) const;
  Array read(const std::string& path) const;
  std::vector<std::string> texts(const std::string& path) const;
  /// A scalar text.
  std::string text(const std::string& path) const;

  /// For repeated access to an object: each call above finds and opens it again.
  const hdf5::Group& root() const;

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

}  // namespace stiefel
