/// A thin layer over the HDF5 C library: handles close themselves, every return value is checked, and failures become
/// Error with HDF5's own description.
///
/// All calls for a file must come from one thread. Numbers are written from and read as double, float or std::int64_t;
/// HDF5 converts them if the type on the disk differs. Arrays are row-major. Text is UTF-8 of variable length.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <stiefel/export.hpp>

namespace stiefel::hdf5 {

/// Types on the disk, little-endian; complex is the compound {r, i} of two f8 and travels as two doubles.
enum class Type { f8, f4, i8, i4, u1, complex, text };
using Shape = std::vector<std::uint64_t>;

STIEFEL_API std::uint64_t element_count(const Shape& shape);
/// The type on the disk that holds a T without conversion.
template <class T> constexpr Type type_for = std::is_same_v<T, double>  ? Type::f8
                                             : std::is_same_v<T, float> ? Type::f4
                                                                        : Type::i8;
/// Numbers per element: 2 for complex, else 1.
constexpr std::uint64_t width(Type type) { return type == Type::complex ? 2 : 1; }
/// Version of the library in use, as "1.10.8".
STIEFEL_API std::string library_version();

/// An HDF5 identifier that is closed with its owner.
class STIEFEL_API Handle {
 public:
  using Close = int (*)(std::int64_t);
  Handle() = default;
  Handle(std::int64_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(other.id_), close_(other.close_) { other.id_ = -1; }
  Handle& operator=(Handle&& other) noexcept;
  ~Handle() { reset(); }
  std::int64_t id() const { return id_; }
  /// Closes the identifier and returns whether HDF5 reported success. A later call does nothing and returns true.
  bool reset() noexcept;

 private:
  std::int64_t id_ = -1;
  Close close_ = nullptr;
};

/// A group or dataset with its attributes. `where` ("file:/group/name") appears in error texts.
class STIEFEL_API Object {
 public:
  Object(Handle handle, std::string where) : handle_(std::move(handle)), where_(std::move(where)) {}
  const std::string& where() const { return where_; }

  /// Create or overwrite an attribute. An existing attribute keeps its type.
  void set_text(const std::string& name, const std::string& value);
  void set_number(const std::string& name, double value, Type type = Type::f8);
  /// Creates or replaces an attribute that is a list of texts.
  void set_texts(const std::string& name, const std::vector<std::string>& values);

  bool has_attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;  ///< variable or fixed length
  double number_attribute(const std::string& name) const;
  std::vector<std::string> attribute_names() const;

  /// Closes the object and throws Error if that fails: a full disk may show only here.
  void close();

 protected:
  std::int64_t id() const { return handle_.id(); }
  Handle handle_;
  std::string where_;
};

class STIEFEL_API Dataset : public Object {
 public:
  using Object::Object;
  Shape shape() const;
  Type type() const;

  /// Changes the extent; only the first axis of an extendible dataset can change.
  void resize(const Shape& shape);
  /// Overwrites whole rows of the first axis, beginning with row `first`; a scalar is one row.
  void write(std::uint64_t first, std::span<const double> values) { write_numbers(first, values); }
  void write(std::uint64_t first, std::span<const float> values) { write_numbers(first, values); }
  void write(std::uint64_t first, std::span<const std::int64_t> values) { write_numbers(first, values); }
  void write(std::uint64_t first, std::span<const std::string> texts);

  /// T is double, float or std::int64_t; complex numbers are read as double.
  template <class T = double> std::vector<T> read(std::uint64_t first, std::uint64_t rows) const;
  template <class T = double> std::vector<T> read() const;
  std::vector<std::string> read_text() const;

  /// Makes this the dimension scale called `name`.
  void make_scale(const std::string& name);
  void attach_scale(unsigned axis, const Dataset& scale);
  /// Bytes of the compressed chunks on the disk.
  std::uint64_t stored_bytes() const;

 private:
  template <class T> void write_numbers(std::uint64_t first, std::span<const T> values);
};

/// How a new dataset is stored. Chunked numbers are shuffled, deflated and have a checksum. In chunked datasets,
/// unwritten f8, f4 and complex numbers are NaN.
struct Layout {
  Type type = Type::f8;
  Shape shape;  ///< empty: a scalar
  Shape chunk;  ///< empty: contiguous and of fixed size; else the first axis can grow
};

class STIEFEL_API Group : public Object {
 public:
  using Object::Object;
  /// Opens the group at a relative or absolute path. Creates it and the groups above it if they are missing.
  Group make_group(const std::string& path) const;
  Dataset create_dataset(const std::string& name, const Layout& layout) const;

  void remove(const std::string& path) const;
  bool exists(const std::string& path) const;
  bool is_group(const std::string& path) const;
  Group group(const std::string& path) const;
  Dataset dataset(const std::string& path) const;
  /// Names of the links, in the order of creation if the file tracks it, else sorted by name.
  std::vector<std::string> children() const;
};

/// An open file, and its root group.
class STIEFEL_API File {
 public:
  /// Creates or truncates a file. The first `user_block` bytes, 0 or a power of 2 from 512 on, are left to the caller.
  static File create(const std::filesystem::path& path, std::uint64_t user_block = 0);
  static File open_for_writing(const std::filesystem::path& path);
  static File open(const std::filesystem::path& path);  ///< read-only

  const Group& root() const { return *root_; }
  Group& root() { return *root_; }
  /// Flushes and closes the file, and throws Error if either fails. All other objects of the file must be closed
  /// before.
  void close();

 private:
  File(Handle handle, const std::filesystem::path& path);
  Handle handle_;
  std::string path_;
  std::unique_ptr<Group> root_;  // declared after handle_: closed before it
};

}  // namespace stiefel::hdf5
