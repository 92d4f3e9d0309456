// The header is a Python literal; only the three keys that every NumPy version writes are understood, everything else is refused.
#include "npy.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <stiefel/error.hpp>
#include <string>
#include <vector>

namespace stiefel {
namespace {

struct Header {
  std::string type;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

/// Reads the text of a header from left to right; every expectation that fails throws with `file` in the sentence.
class HeaderReader {
 public:
  HeaderReader(std::string text, const std::string& file) : text_(std::move(text)), file_(file) {}

  Header read() {
    Header header;
    bool seen[3] = {};
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0 || seen[which]) fail();
      seen[which] = true;
      if (which == 0)
        header.type = quoted();
      else if (which == 1)
        header.fortran_order = boolean();
      else
        header.shape = tuple();
      if (!accept(',') && peek() != '}') fail();
    }
    if (!seen[0] || !seen[1] || !seen[2] || peek() != '\0') fail();
    return header;
  }

 private:
  [[noreturn]] void fail() const { throw Error(fmt::format("{} is damaged: its .npy header does not read as one", file_), Exit::data); }

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
    if (!accept(c)) fail();
  }
  std::string quoted() {
    const char mark = peek();
    if (mark != '\'' && mark != '"') fail();
    const std::size_t end = text_.find(mark, ++next_);
    if (end == text_.npos) fail();
    const std::string inside = text_.substr(next_, end - next_);
    next_ = end + 1;
    return inside;
  }
  bool boolean() {
    peek();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.compare(next_, word.size(), word) != 0) continue;
      next_ += word.size();
      return value;
    }
    fail();
  }
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> numbers;
    expect('(');
    while (!accept(')')) {
      peek();
      std::uint64_t number = 0;
      const auto [end, error] = std::from_chars(text_.data() + next_, text_.data() + text_.size(), number);
      if (error != std::errc()) fail();
      next_ = std::size_t(end - text_.data());
      numbers.push_back(number);
      if (!accept(',') && peek() != ')') fail();
    }
    return numbers;
  }

  std::string text_;
  const std::string& file_;
  std::size_t next_ = 0;
};

template <class T> Matrix<double> numbers(const char* bytes, Index rows, Index cols, bool fortran_order) {
  Matrix<double> values(rows, cols);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) {
      T number;
      std::memcpy(&number, bytes + std::size_t(fortran_order ? j * rows + i : i * cols + j) * sizeof(T), sizeof(T));
      values(i, j) = double(number);
    }
  return values;
}

std::string contents(const std::filesystem::path& path, const std::string& file) {
  if (!std::filesystem::is_regular_file(path)) throw Error(fmt::format("there is no file {}", file), Exit::data);
  std::ifstream stream(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(stream), {});
  if (!stream) throw Error(fmt::format("{} cannot be read", file), Exit::data);
  return bytes;
}

/// Where the header starts and ends; versions 2 and 3 have a length of four bytes instead of two.
std::pair<std::size_t, std::size_t> header_range(const std::string& bytes, const std::string& file) {
  if (bytes.size() < 10 || bytes.compare(0, 6, "\x93NUMPY") != 0) throw Error(fmt::format("{} is not a .npy file", file), Exit::data);
  const int version = bytes[6];
  const std::size_t start = version == 1 ? 10 : 12;
  if (version < 1 || version > 3 || bytes.size() < start)
    throw Error(fmt::format("{} has a .npy version other than 1, 2 and 3", file), Exit::data);
  std::size_t length = 0;
  for (std::size_t i = start; i-- > 8;) length = length << 8 | std::uint8_t(bytes[i]);
  if (length > bytes.size() - start) throw Error(fmt::format("{} is cut off within its .npy header", file), Exit::data);
  return {start, start + length};
}

}  // namespace

Matrix<double> read_npy(const std::filesystem::path& path) {
  const std::string file = path.string();
  const std::string bytes = contents(path, file);
  const auto [start, end] = header_range(bytes, file);
  const Header header = HeaderReader(bytes.substr(start, end - start), file).read();
  const std::uint64_t size = header.type == "<f4" ? 4 : header.type == "<f8" ? 8 : 0;
  if (size == 0)
    throw Error(fmt::format("{} holds numbers of type {}, but only float32 and float64 (<f4, <f8) are read; save array.astype('<f8')", file,
                            header.type),
                Exit::data);
  if (header.shape.empty() || header.shape.size() > 2)
    throw Error(fmt::format("{} has {} dimensions, but a vector or a matrix is needed", file, header.shape.size()), Exit::data);
  const std::uint64_t rows = header.shape[0], cols = header.shape.size() == 2 ? header.shape[1] : 1, present = (bytes.size() - end) / size;
  const bool fits = rows == 0 || cols <= present / rows;  // without overflow
  if (!fits || rows * cols * size != bytes.size() - end)
    throw Error(fmt::format("{} should hold {} × {} numbers of {} bytes after its header, but {} bytes follow", file, rows, cols, size,
                            bytes.size() - end),
                Exit::data);
  if (rows == 0 || cols == 0) return Matrix<double>::Zero(0, 0);
  return size == 4 ? numbers<float>(bytes.data() + end, Index(rows), Index(cols), header.fortran_order)
                   : numbers<double>(bytes.data() + end, Index(rows), Index(cols), header.fortran_order);
}

}  // namespace stiefel
