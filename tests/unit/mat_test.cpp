// MATLAB files: cells that are read in both byte orders, plain and compressed, and that damaged ones are refused with a
// sentence.
#include "music_files.hpp"

#include "tasks/formats/mat.hpp"

using namespace stiefel;
using namespace music_files;

namespace {

const music_files::Mat little, big{true};
const Bytes numbers = {1, 2, 3, 4, 5, 6};

std::vector<MatCell> read(const Bytes& bytes, const std::vector<std::string>& names = {"a"}) {
  return read_mat_cells(bytes, names, named);
}

Bytes file(const Bytes& content) { return little.header() + content; }
Bytes one(const Bytes& array) { return file(little.cell("a", {array})); }
/// The cell `a` with one matrix of these parts.
Bytes inner(const Bytes& parts) { return one(little.element(14, parts)); }
Bytes variable(const Bytes& parts) { return file(little.element(14, parts)); }
Bytes header_with(std::size_t place, const Bytes& bytes) {
  return (little.header() + little.cell("a", {})).replace(place, bytes.size(), bytes);
}

const Bytes sound = little.array(2, 3, numbers);

std::vector<Damage> damages_of_headers() {
  return {
      {"not a MATLAB file: 0 bytes", ""},
      {"not a MATLAB file: 127 bytes, where the header alone has 128", little.header().substr(0, 127)},
      {"not a MATLAB file of version 5: its header does not end with IM or MI", header_with(126, "XX")},
      {"not a MATLAB file of version 5", header_with(126, "II")},
      {"not a MATLAB file of version 5", Bytes(200, 'x')},
      {"a MATLAB 7.3 file, which is not supported; save it with the option -v7", header_with(124, {'\0', '\x02'})},
      {"a MATLAB file of version 0x0001, expected 0x0100", header_with(126, "MI")},
      {"a MATLAB file of version 0x0000", header_with(124, zeros(2))},
      {"a MATLAB file of version 0x0101", header_with(124, "\x01\x01")},
      {"holds no variable a; expected are a", little.header()},
      {"holds no variable a; expected are a", file(little.cell("b", {sound}))},
      {"holds the variable a twice", file(little.cell("a", {sound}) + little.cell("a", {sound}))},
      {"ends inside the tag of a variable", file("\x0e")},
      {"ends inside the tag of a variable", file(little.word(14) + zeros(3))},
      {"ends inside a variable: 0 bytes are there of 8", file(little.word(14) + little.word(8))},
      {"ends inside a variable: 8 bytes are there of 4294967295", file(little.word(14) + little.word(~0u) + zeros(8))},
      {"a variable has the type 9, expected 14, a matrix", file(little.element(9, zeros(8)))},
      {"a variable has the type 65535, expected 14", file(little.element(65535, zeros(8)))},
      {"a variable is empty", file(little.element(14, ""))},
      {"a variable is a small element of 5 bytes", file(little.word(5u << 16 | 14) + zeros(4))},
      {"a variable is a small element of 65535 bytes", file(Bytes(8, '\xff'))},
  };
}

std::vector<Damage> damages_of_variables() {
  const Bytes flags = little.element(6, little.word(1) + little.word(0)), name = little.element(1, "a"),
              sizes = little.sizes({1, 1});
  return {
      {"ends inside the tag of the sizes of a variable", variable(flags)},
      {"ends inside the tag of the name of a variable", variable(flags + sizes)},
      {"the flags of a variable are not two numbers", variable(little.element(5, zeros(8)) + sizes + name)},
      {"the flags of a variable are not two numbers", variable(little.small(6, zeros(4)) + sizes + name)},
      {"the sizes of a variable are not numbers", variable(flags + little.element(6, zeros(8)) + name)},
      {"the sizes of a variable are not numbers", variable(flags + little.element(5, zeros(7)) + name)},
      {"the name of a variable is not text", variable(flags + sizes + little.element(9, "a"))},
      {"the variable a is of class 6, expected 1, a cell",
       variable(little.head(6, {2, 3}, "a") + little.element(2, numbers))},
      {"the variable a is of class 2, expected 1, a cell", variable(little.head(2, {1, 1}, "a") + zeros(8))},
      {"the cell a has the size 1, expected rows × columns", variable(flags + little.small(5, little.word(1)) + name)},
      {"the cell a has the size , expected", variable(flags + little.element(5, "") + name)},
      {"the cell a has the size 1 × 1 × 1, expected", variable(little.head(1, {1, 1, 1}, "a") + sound)},
      {"the cell a has the size -1 × 1, expected", variable(little.head(1, {~0u, 1}, "a") + sound)},
      {"ends inside the tag of a{2}", variable(little.head(1, {1, 2}, "a") + sound)},
      {"ends inside the tag of a{2}", variable(little.head(1, {0x7fffffff, 0x7fffffff}, "a") + sound)},
      {"the cell a continues after its 1 entries", variable(little.head(1, {1, 1}, "a") + sound + sound)},
      {"the cell a continues after its 0 entries", variable(little.head(1, {0, 0x7fffffff}, "a") + sound)},
  };
}

std::vector<Damage> damages_of_arrays() {
  return {
      {"a{1} has the type 15, expected 14", one(little.compressed(sound) + zeros(3))},
      {"a{1} is empty", one(little.element(14, ""))},
      {"a{1} is of class 1, expected real numbers", one(little.cell("", {sound}))},
      {"a{1} is of class 5, expected real numbers", inner(little.head(5, {2, 3}, "") + little.element(2, numbers))},
      {"a{1} is of class 16, expected real numbers", inner(little.head(16, {2, 3}, "") + little.element(2, numbers))},
      {"a{1} is of class 6, complex, expected",
       inner(little.head(6 | 0x800, {2, 3}, "") + little.element(2, numbers) + little.element(2, numbers))},
      {"a{1} has the size 2 × 3 × 1, expected", inner(little.head(6, {2, 3, 1}, "") + little.element(2, numbers))},
      {"a{1} has the size 2 × -3, expected", inner(little.head(6, {2, ~0u - 2}, "") + little.element(2, numbers))},
      {"ends inside the tag of the numbers of a{1}", inner(little.head(6, {2, 3}, ""))},
      {"the numbers of a{1} have the unknown type 14", one(little.array(2, 3, numbers, 14))},
      {"the numbers of a{1} have the unknown type 8", one(little.array(2, 3, numbers, 8))},
      {"the numbers of a{1} have the unknown type 65535", one(little.array(2, 3, numbers, 65535))},
      {"a{1} has 6 bytes for 2 × 4 numbers of 1 bytes", one(little.array(2, 4, numbers))},
      {"a{1} has 6 bytes for 2 × 3 numbers of 2 bytes", one(little.array(2, 3, numbers, 3))},
      {"a{1} has 6 bytes for 2 × 3 numbers of 8 bytes", one(little.array(2, 3, numbers, 9))},
      {"a{1} has 0 bytes for 2147483647 × 2147483647 numbers", one(little.array(0x7fffffff, 0x7fffffff, ""))},
      {"a{1} continues after its numbers",
       inner(little.head(6, {2, 3}, "") + little.element(2, numbers) + little.element(2, numbers))},
  };
}

}  // namespace

TEST_CASE("cells are read in both byte orders, plain and compressed, with elements of every size") {
  for (const music_files::Mat& order : {little, big})
    for (const bool compressed : {false, true}) {
      const auto stored = [&](const Bytes& variable) { return compressed ? order.compressed(variable) : variable; };
      const Bytes short_array = order.element(14, order.head(6, {2, 1}, "") + order.small(2, {7, 8}));
      const Bytes opaque =
          order.element(14, order.element(6, order.word(17) + order.word(0)) + order.element(1, "text"));
      CHECK_THROWS_WITH_AS(read(order.header() + stored(opaque), {"text"}),
                           doctest::Contains("holds text as an object of MATLAB"), Error);
      const Bytes bytes = order.header() + stored(opaque) + stored(order.cell("ignored", {})) +
                          stored(order.cell("b", {})) +
                          stored(order.cell("a", {order.array(2, 3, numbers), order.array(0, 88, ""), short_array}));
      const std::vector<MatCell> cells = read(bytes, {"a", "b"});
      REQUIRE(cells.size() == 2);
      REQUIRE(cells[0].size() == 3);
      CHECK(cells[1].empty());
      CHECK((cells[0][0].rows == 2 && cells[0][0].columns == 3));
      for (int i = 0; i < 6; ++i) CHECK(cells[0][0].at(i % 2, i / 2) == i + 1);
      CHECK((cells[0][1].rows == 0 && cells[0][1].columns == 88));
      CHECK((cells[0][2].at(0, 0) == 7 && cells[0][2].at(1, 0) == 8));
    }
}

TEST_CASE("numbers of every type that they may be stored in") {
  const struct {
    std::uint32_t type;
    int width;
    std::uint64_t bits;
    double value;
  } all[] = {{1, 1, 0xff, -1},
             {2, 1, 0xff, 255},
             {3, 2, 0xfffe, -2},
             {4, 2, 0xfffe, 65534},
             {5, 4, 0xfffffffd, -3},
             {6, 4, 0xfffffffd, 4294967293.0},
             {7, 4, 0xbfc00000, -1.5},
             {9, 8, 0x3ff8000000000000, 1.5},
             {12, 8, 0xfffffffffffffffc, -4},
             {13, 8, 0x8000000000000000, 9223372036854775808.0}};
  for (const music_files::Mat& order : {little, big})
    for (const auto& number : all) {
      const Bytes stored = music_files::number(number.bits, number.width, order.big);
      const MatCell cell = read(order.header() + order.cell("a", {order.array(1, 2, stored + stored, number.type)}))[0];
      CHECK(cell[0].at(0, 1) == number.value);
    }
}

TEST_CASE("damaged files are refused") {
  std::vector<Damage> all = damages_of_headers();
  for (const auto& more : {damages_of_variables(), damages_of_arrays()})
    all.insert(all.end(), more.begin(), more.end());
  check_damages(all, one(sound), [](const Bytes& bytes) { read(bytes); });
}

TEST_CASE("damage to compressed data") {
  const Bytes cell = little.cell("a", {sound}), compressed = deflated(cell);
  const auto says = [](const Bytes& data) { return refusal([&] { read(file(little.element(15, data))); }); };
  CHECK(says(compressed) == "accepted");
  CHECK(says("") == "cannot be decompressed (the compressed data ends too early)");
  CHECK(says("no zlib data") == "cannot be decompressed (incorrect header check)");
  CHECK(says(compressed + "abc") == "has 3 bytes behind the end of compressed data");
  CHECK(says(deflated(cell + cell)) == "a compressed variable continues after its end");
  CHECK(says(deflated(cell.substr(0, 100))).starts_with("ends inside a compressed variable"));
  CHECK(says(deflated(little.element(15, compressed))) == "a variable has the type 15, expected 14, a matrix");
  for (std::size_t length = 1; length < compressed.size(); ++length)
    CHECK(says(compressed.substr(0, length)).starts_with("cannot be decompressed"));
  for (std::size_t place = 0; place < compressed.size(); ++place)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bytes = compressed;
      bytes[place] = char(bytes[place] ^ 1 << bit);
      const std::string text = says(bytes);
      CHECK((text == "accepted" || text.find("compressed") != std::string::npos));
    }
}

TEST_CASE("files that grow without end when they are decompressed are given up") {
  const Bytes bomb = deflated(little.word(14) + little.word(0xfffffff0) + zeros((std::size_t(1) << 28) + 1));
  CHECK(bomb.size() < 400000);
  CHECK(refusal([&] { read(file(little.element(15, bomb))); }) ==
        "decompresses to more than the limit of 268435456 bytes");
}
