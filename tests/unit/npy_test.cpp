// .npy arrays: what is read, and that every damaged one is refused.
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <cstring>

#include <stiefel/error.hpp>
#include <stiefel/npy.hpp>

using namespace stiefel;
using namespace std::string_literals;

namespace {

std::string npy(const std::string& header, const std::string& numbers, int version = 1) {
  std::string bytes = "\x93NUMPY"s + char(version) + '\0' + char(header.size() & 255) + char(header.size() >> 8);
  if (version > 1) bytes += "\0\0"s;
  return bytes + header + numbers;
}

std::string header(const std::string& type, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }          \n";
}

template <class T> std::string numbers(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

Npy parse(const std::string& bytes) { return parse_npy(std::as_bytes(std::span(bytes)), "f"); }

std::string refusal(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::data);
    return error.what();
  }
  return "accepted";
}

using Values = std::vector<double>;
using Sizes = std::vector<std::size_t>;
const std::string two = numbers<double>({1, 2});
const std::string good = npy(header("<f8", "(2,)"), two);

struct Damage {
  const char* sentence;
  std::string bytes;
};

std::vector<Damage> damaged_files() {
  const auto with = [](const std::string& text) { return npy(text, two); };
  const char *literal = "f: invalid .npy header: ", *count = "f: the header describes ";
  return {
      {"f: not an .npy file", ""},
      {"f: not an .npy file", "\x93"},
      {"f: not an .npy file", "\x93NUMP"},
      {"f: not an .npy file", "\x93numpy\1\0"s + good.substr(8)},
      {"f: not an .npy file", "PK\3\4" + good},
      {"f: not an .npy file", "1,2,3\n"},
      {"f: unsupported .npy version", "\x93NUMPY"},
      {"f: unsupported .npy version", "\x93NUMPY\0\0"s + good.substr(8)},
      {"f: unsupported .npy version", "\x93NUMPY\4\0"s + good.substr(8)},
      {"f: unsupported .npy version", "\x93NUMPY\xff\0"s + good.substr(8)},
      {"f: unsupported .npy version", "\x93NUMPY\1\1"s + good.substr(8)},
      {"f: truncated within its .npy header", "\x93NUMPY\1"},
      {"f: truncated within its .npy header", "\x93NUMPY\1\0"s},
      {"f: truncated within its .npy header", "\x93NUMPY\1\0\xff"s},
      {"f: truncated within its .npy header", "\x93NUMPY\1\0\xff\xff"s + header("<f8", "(2,)") + two},
      {"f: truncated within its .npy header", "\x93NUMPY\2\0\x10\0\0"s},
      {"f: truncated within its .npy header", "\x93NUMPY\2\0\xff\xff\xff\xff"s + header("<f8", "(2,)") + two},
      {"f: truncated within its .npy header", good.substr(0, 40)},
      {literal, with("")},
      {literal, with("\0\0\0"s)},
      {literal, with("{")},
      {literal, with("{}")},
      {literal, with("{'descr': '<f8'}")},
      {literal, with("{'descr': '<f8', 'fortran_order': False}")},
      {literal, with("{'descr': '<f8', 'fortran_order': false, 'shape': (2,)}")},
      {literal, with("{'descr': '<f8', 'fortran_order': 0, 'shape': (2,)}")},
      {literal, with("{'descr': <f8, 'fortran_order': False, 'shape': (2,)}")},
      {literal, with("{'descr': '<f8, 'fortran_order': False, 'shape': (2,)}")},
      {"f: structured arrays are not supported; save numpy.lib.recfunctions.structured_to_unstructured(array)",
       with("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,)}")},
      {literal, with("{'descr': '<f8', 'fortran_order': False, 'shape': (2LL,)}")},
      {literal, with("{'descr': '<f8', 'fortran_order': False, 'shape': (L,)}")},
      {literal, with("{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}")},
      {literal, with("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'more': '1'}")},
      {literal, with("{'descr': '<f8', 'fortran_order': False, 'shape': [2]}")},
      {literal, with("{'descr': '<f8', 'fortran_order': False, 'shape': (-2,)}")},
      {literal, with("{'descr': '<f8', 'fortran_order': False, 'shape': (2.0,)}")},
      {literal, with("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}")},
      {literal, with("{'descr': '<f8', 'fortran_order': False, 'shape': (2,")},
      {literal, with("{'descr': '<f8', 'fortran_order': False, 'shape': (2 2)}")},
      {literal, with("{'descr': '<f8' 'fortran_order': False, 'shape': (2,)}")},
      {literal, with("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)} {}")},
      {literal, with("__import__('os')")},
      {literal, with(header("<f8", "(2,)") + "\0\0"s)},
      {literal, with(header("<f8", "(2,)") + "\0 more"s)},
      {literal, with(std::string(60000, '{'))},
      {"f: arrays of more than four dimensions are not supported", with(header("<f8", "(1, 1, 1, 1, 2)"))},
      {"f: arrays of more than four dimensions are not supported", with(header("<f8", "(1, 1, 1, 1, 9999999999"))},
      {"f: unsupported numbers of type \"<c16\"; save the real and the imaginary parts as numbers: "
       "numpy.stack([array.real, "
       "array.imag], axis=-1)",
       with(header("<c16", "(1,)"))},
      {"f: unsupported numbers of type \">f3\"; save array.astype('<f8')", with(header(">f3", "(8,)"))},
      {"f: unsupported numbers of type \"|O\"; save array.astype('<f8') if all objects are numbers; pad sequences",
       with(header("|O", "(2,)"))},
      {"f: unsupported numbers of type \"<U4\"; save array.astype('<f8') if the text is numbers, or number the "
       "classes: "
       "numpy.unique",
       with(header("<U4", "(1,)"))},
      {"f: unsupported numbers of type \"|S8\"; save array.astype('<f8') if the text is numbers",
       with(header("|S8", "(2,)"))},
      {"f: unsupported numbers of type \"|V8\"; save the numbers that these bytes hold", with(header("|V8", "(2,)"))},
      {"f: unsupported numbers of type \"<>f8\"", with(header("<>f8", "(2,)"))},
      {"f: unsupported numbers of type \"<\"", with(header("<", "(2,)"))},
      {"f: unsupported numbers of type \"\"", with(header("", "(2,)"))},
      {count, with(header("<f8", "(3,)"))},
      {count, with(header("<f8", "(1,)"))},
      {count, with(header("<f8", "()"))},
      {count, with(header("<f8", "(0,)"))},
      {count, with(header("<f8", "(0, 18446744073709551615)"))},
      {count, with(header("<f8", "(18446744073709551615, 0)"))},
      {count, with(header("<f8", "(18446744073709551615,)"))},
      {count, with(header("<f8", "(2305843009213693954,)"))},  // · 8 = 16 modulo 2⁶⁴
      {count, with(header("<f8", "(4294967296, 4294967296)"))},
      {count, with(header("<f8", "(4294967296, 4294967296, 2)"))},
      {count, with(header("<f8", "(65536, 65536, 65536, 65536)"))},
      {count, good.substr(0, good.size() - 1)},
      {count, good + '\0'},
  };
}

}  // namespace

TEST_CASE("arrays of every type, version and order") {
  CHECK(parse(good).values == Values{1, 2});
  CHECK(parse(good).shape == Sizes{2});
  CHECK(parse(npy(header("<f4", "(1, 2)"), numbers<float>({1.5f, -2}), 2)).values == Values{1.5, -2});
  CHECK(parse(npy(header("<i8", "(2,)"), numbers<std::int64_t>({-3, 4}), 3)).values == Values{-3, 4});
  CHECK(parse(npy(header("<u8", "(1,)"), numbers<std::uint64_t>({5}))).values == Values{5});
  CHECK(parse(npy(header("<i4", "(1,)"), numbers<std::int32_t>({-5}))).values == Values{-5});
  CHECK(parse(npy(header("<u4", "(1,)"), numbers<std::uint32_t>({~0u}))).values == Values{4294967295.});
  CHECK(parse(npy(header("<i2", "(1,)"), numbers<std::int16_t>({-6}))).values == Values{-6});
  CHECK(parse(npy(header("<u2", "(1,)"), numbers<std::uint16_t>({60000}))).values == Values{60000});
  CHECK(parse(npy(header("|i1", "(2,)"), "\xff\x01")).values == Values{-1, 1});
  CHECK(parse(npy(header("|u1", "(2,)"), "\xff\x01")).values == Values{255, 1});
  CHECK(parse(npy(header("|b1", "(2,)"), "\x00\x01"s)).values == Values{0, 1});
  CHECK(parse(npy(header("|b1", "(3,)"), "\x00\x02\xff"s)).values == Values{0, 1, 1});
  for (const std::string one : {"|u1", "<u1", ">u1", "=u1", "u1"})
    CHECK(parse(npy(header(one, "(2,)"), "\xff\x01")).values == Values{255, 1});
  CHECK(parse(npy(header(">b1", "(2,)"), "\x00\x01"s)).values == Values{0, 1});
  CHECK(parse(npy(header(">u2", "(2,)"), "\x01\x02\xff\x00"s)).values == Values{258, 65280});
  CHECK(parse(npy(header(">i4", "(1,)"), "\xff\xff\xff\xfe")).values == Values{-2});
  CHECK(parse(npy(header(">i8", "(1,)"), "\xff\xff\xff\xff\xff\xff\xff\xfd")).values == Values{-3});
  CHECK(parse(npy(header(">f4", "(1,)"), "\x3f\xc0\0\0"s)).values == Values{1.5});
  CHECK(parse(npy(header(">f8", "(1,)"), "\xc0\0\0\0\0\0\0\0"s)).values == Values{-2});
  CHECK(parse(npy(header("<f8", "(2L,)"), two)).shape == Sizes{2});
  CHECK(parse(npy(header("<f8", "(1L, 2L)"), two)).shape == Sizes{1, 2});
  CHECK(parse(npy(header("<f8", "()"), numbers<double>({7}))).values == Values{7});
  CHECK(parse(npy(header("<f8", "(0, 3)"), "")).values.empty());
  CHECK(parse(npy("{\"shape\":(2,),\"descr\":\"<f8\",\"fortran_order\":False}", two)).values == Values{1, 2});
  // Element (i, j, k) of a 2 × 3 × 2 array is 100 i + 10 j + k.
  const Values cube = {0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121};
  CHECK(parse(npy(header("|u1", "(2, 3, 2)"), "\x00\x01\x0a\x0b\x14\x15\x64\x65\x6e\x6f\x78\x79"s)).values == cube);
  CHECK(parse(npy(header("|u1", "(2, 3, 2)", "True"), "\x00\x64\x0a\x6e\x14\x78\x01\x65\x0b\x6f\x15\x79"s)).values ==
        cube);
}

TEST_CASE("arrays that NumPy wrote") {
  const Npy c = read_npy(STIEFEL_GOLDEN "/npy/c_float64.npy"),
            fortran = read_npy(STIEFEL_GOLDEN "/npy/fortran_float64.npy");
  CHECK((c.shape == fortran.shape && c.values == fortran.values && c.shape.size() == 2));
  CHECK(read_npy(STIEFEL_GOLDEN "/npy/cube.npy").shape.size() == 3);
  CHECK_THROWS_AS(read_npy(STIEFEL_GOLDEN "/npy"), Error);
}

TEST_CASE("damaged files are refused") {
  const auto all = damaged_files();
  CHECK(all.size() >= 40);
  for (const Damage& damage : all) {
    const std::string text = refusal(damage.bytes);
    CAPTURE(text);
    CAPTURE(damage.sentence);
    CHECK(text.starts_with(damage.sentence));
  }
  for (std::size_t length = 0; length < good.size(); ++length) CHECK(refusal(good.substr(0, length)) != "accepted");
}
