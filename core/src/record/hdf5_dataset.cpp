// Attributes and datasets of the layer over HDF5's C library.
#include <fmt/format.h>
#include <hdf5_hl.h>

#include <algorithm>

#include <stiefel/error.hpp>

#include "record/hdf5_detail.hpp"

namespace stiefel::hdf5 {
namespace {

/// Rows [first, first + rows) of a dataset, as HDF5 data spaces of the file and of memory.
struct Selection {
  Handle file, memory;
};

Selection select(const Handle& dataset, Shape shape, std::uint64_t first, std::uint64_t rows,
                 const std::string& where) {
  Selection selection;
  selection.file = {ok(H5Dget_space(dataset.id()), "examine", where), H5Sclose};
  if (!shape.empty()) {
    std::vector<hsize_t> start(shape.size(), 0), count(shape.begin(), shape.end());
    start[0] = first;
    count[0] = rows;
    ok(H5Sselect_hyperslab(selection.file.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
       "select rows of", where);
    shape[0] = rows;
  }
  selection.memory = space_of(shape, false, where);
  return selection;
}

std::uint64_t row_width(const Shape& shape) {
  return shape.empty() ? 1 : element_count(Shape(shape.begin() + 1, shape.end()));
}

/// Reads `count` strings of fixed or variable length. read(type, memory) fills memory of that type.
template <class Read>
std::vector<std::string> read_strings(hid_t type, hid_t space, std::size_t count, const std::string& where, Read read) {
  std::vector<std::string> texts(count);
  if (ok(H5Tis_variable_str(type), "examine", where) > 0) {
    std::vector<char*> pointers(count, nullptr);
    const Handle memory = text_type();
    if (H5Tget_cset(type) == H5T_CSET_ASCII) ok(H5Tset_cset(memory.id(), H5T_CSET_ASCII), "set ASCII of", where);
    ok(read(memory.id(), pointers.data()), "read", where);
    for (std::size_t i = 0; i < count; ++i)
      if (pointers[i]) texts[i] = pointers[i];
    ok(H5Dvlen_reclaim(memory.id(), space, H5P_DEFAULT, pointers.data()), "free the memory of", where);
    return texts;
  }
  const std::size_t length = H5Tget_size(type);
  if (length > most_elements_read / (count + 1))
    throw Error(where + " claims texts of an impossible length; the file is damaged", Exit::damaged);
  std::string bytes(length * count, '\0');
  ok(read(type, bytes.data()), "read", where);
  for (std::size_t i = 0; i < count; ++i) {
    texts[i] = bytes.substr(i * length, length);
    texts[i].resize(std::min(texts[i].find('\0'), length));
  }
  return texts;
}

}  // namespace

void Object::close() {
  if (!handle_.reset()) fail("close", where_);
}

void Object::set_text(const std::string& name, const std::string& value) {
  const Handle type = text_type(), space = space_of({}, false, where_);
  const Handle attribute(has_attribute(name)
                             ? ok(H5Aopen(id(), name.c_str(), H5P_DEFAULT), "open an attribute of", where_)
                             : ok(H5Acreate2(id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                                  "add an attribute to", where_),
                         H5Aclose);
  const char* text = value.c_str();
  ok(H5Awrite(attribute.id(), type.id(), &text), "write an attribute of", where_);
}

void Object::set_number(const std::string& name, double value, Type type) {
  const Handle stored = disk_type(type), space = space_of({}, false, where_);
  const Handle attribute(has_attribute(name)
                             ? ok(H5Aopen(id(), name.c_str(), H5P_DEFAULT), "open an attribute of", where_)
                             : ok(H5Acreate2(id(), name.c_str(), stored.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                                  "add an attribute to", where_),
                         H5Aclose);
  ok(H5Awrite(attribute.id(), H5T_NATIVE_DOUBLE, &value), "write an attribute of", where_);
}

void Object::set_texts(const std::string& name, const std::vector<std::string>& values) {
  if (has_attribute(name)) ok(H5Adelete(id(), name.c_str()), "replace an attribute of", where_);
  const Handle type = text_type(), space = space_of({values.size()}, false, where_);
  const Handle attribute(ok(H5Acreate2(id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                            "add an attribute to", where_),
                         H5Aclose);
  std::vector<const char*> texts;
  for (const std::string& value : values) texts.push_back(value.c_str());
  ok(H5Awrite(attribute.id(), type.id(), texts.data()), "write an attribute of", where_);
}

bool Object::has_attribute(const std::string& name) const {
  return ok(H5Aexists(id(), name.c_str()), "look for an attribute of", where_) > 0;
}

std::string Object::text_attribute(const std::string& name) const {
  if (!has_attribute(name)) throw Error(fmt::format("{} has no attribute '{}'", where_, name), Exit::damaged);
  const Handle attribute(ok(H5Aopen(id(), name.c_str(), H5P_DEFAULT), "open an attribute of", where_), H5Aclose);
  const Handle type(ok(H5Aget_type(attribute.id()), "examine an attribute of", where_), H5Tclose);
  const Handle space(ok(H5Aget_space(attribute.id()), "examine an attribute of", where_), H5Sclose);
  if (H5Tget_class(type.id()) != H5T_STRING || H5Sget_simple_extent_npoints(space.id()) != 1)
    throw Error(fmt::format("attribute '{}' of {} is not one text", name, where_), Exit::damaged);
  return read_strings(type.id(), space.id(), 1, where_,
                      [&](hid_t memory, void* to) { return H5Aread(attribute.id(), memory, to); })[0];
}

double Object::number_attribute(const std::string& name) const {
  if (!has_attribute(name)) throw Error(fmt::format("{} has no attribute '{}'", where_, name), Exit::damaged);
  const Handle attribute(ok(H5Aopen(id(), name.c_str(), H5P_DEFAULT), "open an attribute of", where_), H5Aclose);
  const Handle type(ok(H5Aget_type(attribute.id()), "examine an attribute of", where_), H5Tclose);
  const Handle space(ok(H5Aget_space(attribute.id()), "examine an attribute of", where_), H5Sclose);
  const H5T_class_t kind = H5Tget_class(type.id());
  if ((kind != H5T_INTEGER && kind != H5T_FLOAT) || H5Sget_simple_extent_npoints(space.id()) != 1)
    throw Error(fmt::format("attribute '{}' of {} is not one number", name, where_), Exit::damaged);
  double value = 0;
  ok(H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value), "read an attribute of", where_);
  return value;
}

std::vector<std::string> Object::attribute_names() const {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5A_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->push_back(name);
    return 0;
  };
  hsize_t position = 0;
  ok(H5Aiterate2(id(), H5_INDEX_NAME, H5_ITER_INC, &position, add, &names), "list the attributes of", where_);
  return names;
}

Shape Dataset::shape() const {
  const Handle space(ok(H5Dget_space(id()), "examine", where_), H5Sclose);
  const int rank = ok(H5Sget_simple_extent_ndims(space.id()), "examine", where_);
  std::vector<hsize_t> size(std::size_t(rank), 0);
  ok(H5Sget_simple_extent_dims(space.id(), size.data(), nullptr), "examine", where_);
  return Shape(size.begin(), size.end());
}

Type Dataset::type() const {
  const Handle type(ok(H5Dget_type(id()), "examine", where_), H5Tclose);
  return type_of(type.id(), where_);
}

void Dataset::resize(const Shape& shape) {
  const std::vector<hsize_t> size(shape.begin(), shape.end());
  ok(H5Dset_extent(id(), size.data()), "resize", where_);
}

template <class T> void Dataset::write_numbers(std::uint64_t first, std::span<const T> values) {
  const Shape size = shape();
  const Type kind = type();
  STIEFEL_ASSERT(kind != Type::text && (kind != Type::complex || type_for<T> == Type::f8));
  if (values.empty()) return;
  const std::uint64_t per_row = row_width(size) * width(kind);
  STIEFEL_ASSERT(per_row > 0 && values.size() % per_row == 0);
  const Handle memory = memory_type(kind, type_for<T>);
  const Selection selection = select(handle_, size, first, values.size() / per_row, where_);
  ok(H5Dwrite(id(), memory.id(), selection.memory.id(), selection.file.id(), H5P_DEFAULT, values.data()), "write",
     where_);
}

void Dataset::write(std::uint64_t first, std::span<const std::string> texts) {
  const Shape size = shape();
  STIEFEL_ASSERT(type() == Type::text && texts.size() % row_width(size) == 0);
  if (texts.empty()) return;
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  const Handle memory = text_type();
  const Selection selection = select(handle_, size, first, texts.size() / row_width(size), where_);
  ok(H5Dwrite(id(), memory.id(), selection.memory.id(), selection.file.id(), H5P_DEFAULT, pointers.data()), "write",
     where_);
}

template <class T> std::vector<T> Dataset::read(std::uint64_t first, std::uint64_t rows) const {
  const Shape size = shape();
  const Type kind = type();
  if (kind == Type::text) throw Error(where_ + " holds text, not numbers", Exit::damaged);
  const std::uint64_t per_row = row_width(size), available = size.empty() ? 1 : size[0];
  if (first > available || rows > available - first)
    throw Error(fmt::format("{} has {} rows; rows up to {} were asked for", where_, available, first + rows),
                Exit::damaged);
  if (rows != 0 && per_row > most_elements_read / rows)
    throw Error(where_ + " claims an impossible size; the file is damaged", Exit::damaged);
  if (kind == Type::complex && type_for<T> != Type::f8)
    throw Error(where_ + " holds complex numbers, not real ones", Exit::damaged);
  std::vector<T> values(rows * per_row * width(kind));
  if (values.empty()) return values;
  const Handle memory = memory_type(kind, type_for<T>);
  const Selection selection = select(handle_, size, first, rows, where_);
  ok(H5Dread(id(), memory.id(), selection.memory.id(), selection.file.id(), H5P_DEFAULT, values.data()), "read",
     where_);
  return values;
}

template <class T> std::vector<T> Dataset::read() const {
  const Shape size = shape();
  return read<T>(0, size.empty() ? 1 : size[0]);
}

#define STIEFEL_INSTANTIATE(T)                                                              \
  template STIEFEL_API void Dataset::write_numbers(std::uint64_t, std::span<const T>);      \
  template STIEFEL_API std::vector<T> Dataset::read<T>(std::uint64_t, std::uint64_t) const; \
  template STIEFEL_API std::vector<T> Dataset::read<T>() const;
STIEFEL_INSTANTIATE(double)
STIEFEL_INSTANTIATE(float)
STIEFEL_INSTANTIATE(std::int64_t)
#undef STIEFEL_INSTANTIATE

std::vector<std::string> Dataset::read_text() const {
  const Handle stored(ok(H5Dget_type(id()), "examine", where_), H5Tclose),
      space(ok(H5Dget_space(id()), "examine", where_), H5Sclose);
  if (type_of(stored.id(), where_) != Type::text) throw Error(where_ + " holds numbers, not text", Exit::damaged);
  const std::uint64_t count = element_count(shape());
  if (count > most_elements_read)
    throw Error(where_ + " claims an impossible size; the file is damaged", Exit::damaged);
  if (count == 0) return {};
  return read_strings(stored.id(), space.id(), count, where_,
                      [&](hid_t memory, void* to) { return H5Dread(id(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, to); });
}

void Dataset::make_scale(const std::string& name) {
  ok(H5DSset_scale(id(), name.c_str()), "make a dimension scale of", where_);
}

void Dataset::attach_scale(unsigned axis, const Dataset& scale) {
  ok(H5DSattach_scale(id(), scale.id(), axis), "attach a dimension scale to", where_);
}

std::uint64_t Dataset::stored_bytes() const { return H5Dget_storage_size(id()); }

}  // namespace stiefel::hdf5
