// The header is a Python literal; only the three keys that every NumPy writes are understood, everything else is
// refused.
#include <stiefel/npy.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include <stiefel/error.hpp>

namespace stiefel {
namespace {

struct Header {
  std::string type;
  bool fortran_order = false;
  std::vector<std::size_t> shape;
};

/// The beginning of what may be anything, in quotes.
std::string shown(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 40)) shown += c >= ' ' && c <= '~' ? c : '?';
  return fmt::format("\"{}{}\"", shown, text.size() > 40 ? "…" : "");
}

/// Parses from left to right; anything unexpected is refused with the file's name.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Header read() {
    Header header;
    int descr = 0, order = 0, shape = 0;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && ++descr == 1)
        header.type = quoted();
      else if (key == "fortran_order" && ++order == 1)
        header.fortran_order = boolean();
      else if (key == "shape" && ++shape == 1)
        header.shape = tuple();
      else
        fail(fmt::format("its key {} is unknown or duplicate", shown(key)));
      if (!accept(',') && peek() != '}') fail("a comma is missing");
    }
    if (descr + order + shape != 3) fail("descr, fortran_order or shape is missing");
    if (peek() != '\0' || next_ < text_.size()) fail("it has trailing characters");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}: invalid .npy header: {}", file_, what), Exit::data);
  }

  char peek() {
    while (next_ < text_.size() && (text_[next_] == ' ' || text_[next_] == '\n')) ++next_;
    return next_ < text_.size() ? text_[next_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++next_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected {}", c));
  }
  std::string_view quoted() {
    const char mark = peek();
    const std::size_t end = mark == '\'' || mark == '"' ? text_.find(mark, next_ + 1) : text_.npos;
    if (end == text_.npos && mark == '[')
      throw Error(fmt::format("{}: structured arrays are not supported; save "
                              "numpy.lib.recfunctions.structured_to_unstructured(array)",
                              file_),
                  Exit::data);
    if (end == text_.npos) fail("expected a quoted string");
    const std::string_view inside = text_.substr(next_ + 1, end - next_ - 1);
    next_ = end + 1;
    return inside;
  }
  bool boolean() {
    peek();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(next_).starts_with(word)) continue;
      next_ += word.size();
      return value;
    }
    fail("fortran_order must be True or False");
  }
  std::vector<std::size_t> tuple() {
    std::vector<std::size_t> numbers;
    expect('(');
    while (!accept(')')) {
      peek();
      std::uint64_t number = 0;
      const auto [end, error] = std::from_chars(text_.data() + next_, text_.data() + text_.size(), number);
      if (error != std::errc()) fail("expected a number in shape");
      if (numbers.size() == 4)
        throw Error(fmt::format("{}: arrays of more than four dimensions are not supported; save "
                                "array.reshape(array.shape[0], array.shape[1], -1)",
                                file_),
                    Exit::data);
      next_ = std::size_t(end - text_.data());
      next_ += text_.substr(next_, 1) == "L";  // a long integer of Python 2
      numbers.push_back(number);
      if (!accept(',') && peek() != ')') fail("a comma is missing in shape");
    }
    return numbers;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t next_ = 0;
};

/// Where the header starts and ends; versions 2 and 3 have a length of four bytes instead of two.
std::pair<std::size_t, std::size_t> header_range(std::string_view bytes, const std::string& file) {
  if (!bytes.starts_with("\x93NUMPY"))
    throw Error(fmt::format("{}: not an .npy file; save it with numpy.save", file), Exit::data);
  const int version = bytes.size() > 6 ? bytes[6] : 0;
  const std::size_t start = version == 1 ? 10 : 12;
  if (version < 1 || version > 3 || (bytes.size() > 7 && bytes[7] != 0))
    throw Error(fmt::format("{}: unsupported .npy version; it must be 1.0, 2.0 or 3.0", file), Exit::data);
  std::size_t length = 0;
  if (bytes.size() >= start)
    for (std::size_t i = start; i-- > 8;) length = length << 8 | static_cast<std::uint8_t>(bytes[i]);
  if (bytes.size() < start || length > bytes.size() - start)
    throw Error(fmt::format("{}: truncated within its .npy header", file), Exit::data);
  return {start, start + length};
}

using Convert = double (*)(const char*);
template <class T> double convert(const char* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof number);
  return double(number);
}
/// One bit of sign, five of the exponent, ten of the fraction.
double convert_half(const char* bytes) {
  std::uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  const double size = exponent == 0x1f ? (fraction ? std::nan("") : HUGE_VAL)
                      : exponent == 0  ? std::ldexp(fraction, -24)
                                       : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}
/// NumPy writes other bytes than 0 and 1, too, as in a view of other numbers; they are true.
double convert_bool(const char* byte) { return *byte != 0; }

struct Type {
  std::string_view name;
  std::size_t size;
  Convert convert;
};
constexpr Type types[] = {
    {"f2", 2, convert_half},           {"f4", 4, convert<float>},         {"f8", 8, convert<double>},
    {"b1", 1, convert_bool},           {"i1", 1, convert<std::int8_t>},   {"i2", 2, convert<std::int16_t>},
    {"i4", 4, convert<std::int32_t>},  {"i8", 8, convert<std::int64_t>},  {"u1", 1, convert<std::uint8_t>},
    {"u2", 2, convert<std::uint16_t>}, {"u4", 4, convert<std::uint32_t>}, {"u8", 8, convert<std::uint64_t>},
};

/// The type of numbers that `descr` names behind the order of their bytes. Anything else is refused with what to save
/// instead, by its kind: bytes S, text U, complex c, objects O, raw bytes V.
const Type& type_of(const std::string& descr, const std::string& file) {
  const std::string_view name = std::string_view(descr).substr(descr.find_first_of("<>|=") == 0 ? 1 : 0);
  const Type* type = std::find_if(std::begin(types), std::end(types), [&](const Type& t) { return t.name == name; });
  if (type != std::end(types)) return *type;
  const char kind = name.empty() ? ' ' : name[0];
  const char* advice = "save array.astype('<f8') or '<i8'";
  if (kind == 'U' || kind == 'S')
    advice =
        "save array.astype('<f8') if the text is numbers, or number the classes: "
        "numpy.unique(array, return_inverse=True)[1].reshape(array.shape)";
  else if (kind == 'c')
    advice = "save the real and the imaginary parts as numbers: numpy.stack([array.real, array.imag], axis=-1)";
  else if (kind == 'O')
    advice =
        "save array.astype('<f8') if all objects are numbers; pad sequences of different lengths to one length, "
        "and save their lengths as another array";
  else if (kind == 'V')
    advice = "save the numbers that these bytes hold";
  throw Error(fmt::format("{}: unsupported numbers of type {}; {}", file, shown(descr), advice), Exit::data);
}

/// Numbers in the array, if there are as many bytes as they need.
std::size_t checked_count(const Header& header, std::size_t size, std::size_t present, const std::string& file) {
  std::size_t count = 1;
  bool fits = true;
  for (const std::size_t extent : header.shape) {
    fits = fits && (extent == 0 || count <= std::numeric_limits<std::size_t>::max() / size / extent);
    count *= fits ? extent : 1;
  }
  if (!fits || count * size != present)
    throw Error(fmt::format("{}: the header describes {} numbers of {} bytes, but {} bytes follow it", file,
                            fmt::join(header.shape, " × "), size, present),
                Exit::data);
  return count;
}

/// Converts Fortran order, first index fastest, to C order.
void reorder(Npy& array) {
  const std::vector<double> given = array.values;
  std::vector<std::size_t> index(array.shape.size(), 0);
  for (const double value : given) {
    std::size_t place = 0;
    for (std::size_t i = 0; i < index.size(); ++i) place = place * array.shape[i] + index[i];
    array.values[place] = value;
    for (std::size_t i = 0; i < index.size() && ++index[i] == array.shape[i]; ++i) index[i] = 0;
  }
}

}  // namespace

Npy parse_npy(std::span<const std::byte> given, const std::string& file) {
  const std::string_view bytes(reinterpret_cast<const char*>(given.data()), given.size());
  const auto [start, end] = header_range(bytes, file);
  const Header header = HeaderReader(bytes.substr(start, end - start), file).read();
  const Type& type = type_of(header.type, file);
  const std::size_t size = type.size;
  Npy array{header.shape, std::vector<double>(checked_count(header, size, bytes.size() - end, file))};
  const bool swapped = header.type.starts_with('>');
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    char number[8];
    std::copy_n(bytes.data() + end + i * size, size, number);
    if (swapped) std::reverse(number, number + size);
    array.values[i] = type.convert(number);
  }
  if (header.fortran_order && header.shape.size() > 1) reorder(array);
  return array;
}

Npy read_npy(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) throw Error::missing(fmt::format("there is no file {}", path.string()));
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(stream), {});
  if (!stream) throw Error(fmt::format("cannot read {}", path.string()), Exit::data);
  return parse_npy(std::as_bytes(std::span(bytes)), path.string());
}

std::vector<std::size_t> read_lengths(const std::filesystem::path& path, std::size_t count, std::size_t longest) {
  const Npy array = read_npy(path);
  if (array.shape != std::vector<std::size_t>{count})
    throw Error(
        fmt::format("{}: {}; lengths must be {} numbers, one for each sequence", path.string(),
                    array.shape.empty() ? "one number" : fmt::format("an array of {}", fmt::join(array.shape, " × ")),
                    count),
        Exit::data);
  std::vector<std::size_t> lengths;
  for (const double length : array.values) {
    if (!(length >= 1 && length <= double(longest)) || length != std::floor(length))
      throw Error(fmt::format("{}: the length {} is not an integer from 1 to {}", path.string(), length, longest),
                  Exit::data);
    lengths.push_back(std::size_t(length));
  }
  return lengths;
}

}  // namespace stiefel
