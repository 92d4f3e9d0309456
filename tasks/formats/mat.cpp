// Reads MATLAB files; every size in them is held against the bytes that are there.
#include "tasks/formats/mat.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <bit>
#include <memory>
#include <optional>

#include "tasks/formats/inflate.hpp"

namespace stiefel {
namespace {

constexpr std::size_t header_size = 128, most_inflated = std::size_t(1) << 28;

enum Type : std::uint32_t {
  type_int8 = 1,
  type_uint8 = 2,
  type_int16 = 3,
  type_uint16 = 4,
  type_int32 = 5,
  type_uint32 = 6,
  type_single = 7,
  type_double = 9,
  type_int64 = 12,
  type_uint64 = 13,
  type_matrix = 14,
  type_compressed = 15
};
constexpr std::uint32_t class_cell = 1, first_numeric_class = 6, last_numeric_class = 15, flag_complex = 0x800;

/// Bytes of one number of a type, 0 if it is none.
std::size_t width_of(std::uint32_t type) {
  constexpr std::size_t widths[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8};
  return type < std::size(widths) ? widths[type] : 0;
}

std::uint64_t number(std::string_view bytes, bool big_endian) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value = value << 8 | static_cast<std::uint8_t>(bytes[big_endian ? i : bytes.size() - 1 - i]);
  return value;
}

struct Element {
  std::uint32_t type;
  std::string_view data;
};

/// Elements one after another.
class Elements {
 public:
  Elements(const NamedFile& file, std::string_view bytes, bool big_endian)
      : file_(file), rest_(bytes), big_endian_(big_endian) {}

  bool done() const { return rest_.empty(); }

  Element next(std::string_view what) {
    if (rest_.size() < 8) file_.refuse(fmt::format("ends inside the tag of {}", what));
    const std::uint64_t first = word(rest_.substr(0, 4));
    if (first >> 16) return small(first, what);
    const std::uint64_t size = word(rest_.substr(4, 4)), there = rest_.size() - 8;
    if (size > there) file_.refuse(fmt::format("ends inside {}: {} bytes are there of {}", what, there, size));
    const Element element{static_cast<std::uint32_t>(first), rest_.substr(8, size)};
    const std::uint64_t padded = element.type == type_compressed ? size : (size + 7) / 8 * 8;
    rest_.remove_prefix(8 + std::min(padded, there));
    return element;
  }

  std::uint64_t word(std::string_view bytes) const { return number(bytes, big_endian_); }
  bool big_endian() const { return big_endian_; }

 private:
  Element small(std::uint64_t first, std::string_view what) {
    const std::uint64_t size = first >> 16;
    if (size > 4) file_.refuse(fmt::format("{} is a small element of {} bytes, which can have at most 4", what, size));
    const Element element{static_cast<std::uint32_t>(first & 0xffff), rest_.substr(4, size)};
    rest_.remove_prefix(8);
    return element;
  }

  const NamedFile& file_;
  std::string_view rest_;
  bool big_endian_;
};

/// The name of an object of MATLAB's own, such as a string or a table, which the format does not describe; none of
/// others.
std::optional<std::string> name_of_opaque(const Element& variable, bool big_endian, const NamedFile& file) {
  constexpr std::uint64_t opaque = 17;
  if (variable.type != type_matrix || variable.data.empty()) return std::nullopt;
  Elements parts(file, variable.data, big_endian);
  const Element flags = parts.next("the flags of a variable");
  if (flags.data.size() < 4 || (parts.word(flags.data.substr(0, 4)) & 0xff) != opaque) return std::nullopt;
  return std::string(parts.next("the name of a variable").data);
}

struct StoredMatrix {
  std::uint32_t kind = 0;
  bool complex = false;
  std::vector<std::int64_t> sizes;
  std::string name;
  Elements content;
};

StoredMatrix open_matrix(const Element& element, bool big_endian, const std::string& what, const NamedFile& file) {
  if (element.type != type_matrix)
    file.refuse(fmt::format("{} has the type {}, expected {}, a matrix", what, element.type, +type_matrix));
  if (element.data.empty()) file.refuse(fmt::format("{} is empty", what));
  StoredMatrix matrix{0, false, {}, {}, Elements(file, element.data, big_endian)};
  Elements& in = matrix.content;
  const Element flags = in.next("the flags of " + what), sizes = in.next("the sizes of " + what),
                name = in.next("the name of " + what);
  if (flags.type != type_uint32 || flags.data.size() != 8)
    file.refuse(fmt::format("the flags of {} are not two numbers", what));
  const std::uint64_t word = in.word(flags.data.substr(0, 4));
  matrix.kind = static_cast<std::uint32_t>(word & 0xff);
  matrix.complex = (word & flag_complex) != 0;
  if (sizes.type != type_int32 || sizes.data.size() % 4 != 0)
    file.refuse(fmt::format("the sizes of {} are not numbers of 4 bytes", what));
  for (std::size_t i = 0; i < sizes.data.size(); i += 4)
    matrix.sizes.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(in.word(sizes.data.substr(i, 4)))));
  if (width_of(name.type) != 1) file.refuse(fmt::format("the name of {} is not text", what));
  matrix.name = std::string(name.data);
  return matrix;
}

void demand_two_sizes(const StoredMatrix& matrix, const std::string& what, const NamedFile& file) {
  if (matrix.sizes.size() != 2 || matrix.sizes[0] < 0 || matrix.sizes[1] < 0)
    file.refuse(fmt::format("{} has the size {}, expected rows × columns", what, fmt::join(matrix.sizes, " × ")));
}

MatArray read_array(const Element& element, bool big_endian, const std::string& what, const NamedFile& file) {
  StoredMatrix matrix = open_matrix(element, big_endian, what, file);
  if (matrix.kind < first_numeric_class || matrix.kind > last_numeric_class || matrix.complex)
    file.refuse(fmt::format("{} is of class {}{}, expected real numbers", what, matrix.kind,
                            matrix.complex ? ", complex" : ""));
  demand_two_sizes(matrix, what, file);
  const Element numbers = matrix.content.next("the numbers of " + what);
  const std::size_t width = width_of(numbers.type);
  if (width == 0) file.refuse(fmt::format("the numbers of {} have the unknown type {}", what, numbers.type));
  const auto rows = static_cast<std::uint64_t>(matrix.sizes[0]), columns = static_cast<std::uint64_t>(matrix.sizes[1]);
  if (numbers.data.size() % width != 0 || rows * columns != numbers.data.size() / width)  // below 2⁶²
    file.refuse(fmt::format("{} has {} bytes for {} × {} numbers of {} bytes", what, numbers.data.size(), rows, columns,
                            width));
  if (!matrix.content.done()) file.refuse(fmt::format("{} continues after its numbers", what));
  return {matrix.sizes[0], matrix.sizes[1], numbers.type, big_endian, std::string(numbers.data)};
}

MatCell read_cell(StoredMatrix& matrix, const NamedFile& file) {
  if (matrix.kind != class_cell)
    file.refuse(
        fmt::format("the variable {} is of class {}, expected {}, a cell", matrix.name, matrix.kind, class_cell));
  demand_two_sizes(matrix, "the cell " + matrix.name, file);
  const auto count = static_cast<std::uint64_t>(matrix.sizes[0]) * static_cast<std::uint64_t>(matrix.sizes[1]);
  MatCell cell;
  for (std::uint64_t i = 0; i < count; ++i) {  // ends with the bytes, whatever the count says
    const std::string what = fmt::format("{}{{{}}}", matrix.name, i + 1);
    cell.push_back(read_array(matrix.content.next(what), matrix.content.big_endian(), what, file));
  }
  if (!matrix.content.done())
    file.refuse(fmt::format("the cell {} continues after its {} entries", matrix.name, count));
  return cell;
}

bool check_header(std::string_view bytes, const NamedFile& file) {
  if (bytes.size() < header_size)
    file.refuse(fmt::format("not a MATLAB file: {} bytes, where the header alone has {}", bytes.size(), header_size));
  const std::string_view order = bytes.substr(126, 2);
  if (order != "IM" && order != "MI")
    file.refuse("not a MATLAB file of version 5: its header does not end with IM or MI");
  const std::uint64_t version = number(bytes.substr(124, 2), order == "MI");
  if (version == 0x0200)
    file.refuse("a MATLAB 7.3 file, which is not supported; save it with the option -v7 of MATLAB's save");
  if (version != 0x0100) file.refuse(fmt::format("a MATLAB file of version {:#06x}, expected 0x0100", version));
  return order == "MI";
}

}  // namespace

double MatArray::at(std::int64_t row, std::int64_t column) const {
  const std::size_t width = width_of(type);
  const std::uint64_t bits =
      number(std::string_view(stored).substr(static_cast<std::size_t>(row + rows * column) * width, width), big_endian);
  switch (type) {
    case type_int8:
      return static_cast<std::int8_t>(bits);
    case type_int16:
      return static_cast<std::int16_t>(bits);
    case type_int32:
      return static_cast<std::int32_t>(bits);
    case type_int64:
      return static_cast<double>(static_cast<std::int64_t>(bits));
    case type_single:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case type_double:
      return std::bit_cast<double>(bits);
    default:
      return static_cast<double>(bits);
  }
}

std::vector<MatCell> read_mat_cells(std::string_view bytes, const std::vector<std::string>& names,
                                    const NamedFile& file) {
  const bool big_endian = check_header(bytes, file);
  std::vector<MatCell> cells(names.size());
  std::vector<bool> found(names.size());
  std::size_t room = most_inflated;
  for (Elements variables(file, bytes.substr(header_size), big_endian); !variables.done();) {
    Element element = variables.next("a variable");
    std::string inflated;
    if (element.type == type_compressed) {
      inflated = inflate_all(element.data, 15, room, file);
      room -= inflated.size();
      Elements inner(file, inflated, big_endian);
      element = inner.next("a compressed variable");
      if (!inner.done()) file.refuse("a compressed variable continues after its end");
    }
    if (const std::optional<std::string> object = name_of_opaque(element, big_endian, file)) {
      if (std::ranges::count(names, *object))
        file.refuse(fmt::format("holds {} as an object of MATLAB; save it as a cell of arrays", *object));
      continue;
    }
    StoredMatrix matrix = open_matrix(element, big_endian, "a variable", file);
    const auto place = static_cast<std::size_t>(std::find(names.begin(), names.end(), matrix.name) - names.begin());
    if (place == names.size()) continue;
    if (found[place]) file.refuse(fmt::format("holds the variable {} twice", matrix.name));
    found[place] = true;
    cells[place] = read_cell(matrix, file);
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!found[i]) file.refuse(fmt::format("holds no variable {}; expected are {}", names[i], fmt::join(names, ", ")));
  return cells;
}

}  // namespace stiefel
