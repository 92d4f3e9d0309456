// UTF-8 text: what is read, its lines, and that bytes which are no UTF-8 are refused where they are.
#include "scratch.hpp"

#include <doctest/doctest.h>

#include <stiefel/error.hpp>
#include "tasks/formats/text.hpp"

using namespace stiefel;
using scratch::Folder;
using namespace std::string_literals;

namespace {

std::string refusal(const std::string& bytes) {
  try {
    decode_text(bytes, "file");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::data);
    return error.what();
  }
  return "accepted";
}

std::u32string lines_joined(const Lines& lines) {
  std::u32string joined;
  for (std::size_t i = 0; i + 1 < lines.begins.size(); ++i)
    (joined += lines.points.substr(lines.begins[i], lines.begins[i + 1] - lines.begins[i])) += U'|';
  return joined;
}

struct Damage {
  std::size_t place;  // of the byte that is named
  std::string bytes;
};

std::vector<Damage> damaged_texts() {
  return {
      {0, "\x80"},  // a continuation byte alone
      {0,
       "\xbf"
       "a"},
      {2, "ab\x80"},
      {0, "\xc0\x80"},  // overlong forms
      {0, "\xc0\xaf"},
      {0, "\xc1\xbf"},
      {0, "\xe0\x80\x80"},
      {0, "\xe0\x9f\xbf"},
      {0, "\xf0\x80\x80\x80"},
      {0, "\xf0\x8f\xbf\xbf"},
      {1, "a\xc1\x81"},
      {0, "\xed\xa0\x80"},  // surrogates
      {0, "\xed\xbf\xbf"},
      {0, "\xed\xa1\x8c\xed\xbe\xb4"},
      {0, "\xf4\x90\x80\x80"},  // beyond U+10FFFF
      {0, "\xf5\x80\x80\x80"},
      {0, "\xf7\xbf\xbf\xbf"},
      {0, "\xf8\x88\x80\x80\x80"},  // five and six bytes
      {0, "\xfc\x84\x80\x80\x80\x80"},
      {0, "\xfe"},
      {0, "\xff"},
      {0,
       "\xff\xfe"
       "a\0"s},  // UTF-16
      {0, "\xfe\xff\0a"s},
      {0, "a\0b\0"s},  // UTF-16 without a mark
      {1, "a\0bc"s},
      {0, "\0a"s},
      {0, "\0\0\xfe\xff"s},
      {3, "abc\0"s},
      {0, "\xc3"},  // cut off
      {0, "\xe2"},
      {0, "\xe2\x82"},
      {0, "\xf0"},
      {0, "\xf0\x9f"},
      {0, "\xf0\x9f\x98"},
      {4, "text\xe2\x82"},
      {0,
       "\xc3"
       "a"},  // a letter where a continuation should be
      {0,
       "\xe2"
       "a\x82"},
      {0,
       "\xe2\x82"
       "a"},
      {0, "\xf0\x9f\x98 "},
      {0, "\xc3\xc3\xa9"},
      {0, "\xe2\xe2\x82\xac"},
      {1, "caf\xe9"s.substr(2)},  // Latin-1
      {3, "caf\xe9 noir"},
      {1,
       "n\xfc"
       "r"},
      {3, "\xef\xbb\xbf\xff"},  // behind a byte order mark
      {6,
       "a\r\nb\r\n\x93"
       "c"},
      {1, "\r\x80"},
      {4, "\x1f\x8b\x08\x08\xff"s.substr(0, 1) + "abc\xff"},
      {0, "\x1f\x8b\x08\x00"s},  // gzip
      {0, "\x89PNG\r\n"},
  };
}

}  // namespace

TEST_CASE("code points are read and written") {
  const std::u32string all = U"aÄ€\U0001F600\n\U0010FFFF\uFEFF\u0080\u07FF\u0800\uD7FF\uE000\uFFFF\U00010000";
  std::string bytes;
  for (const char32_t point : all) bytes += encode_utf8(point);
  CHECK(decode_text(bytes, "file") == all);
  CHECK(decode_text("", "file").empty());
  CHECK(decode_text("\xef\xbb\xbf"
                    "a\xef\xbb\xbf",
                    "file") == U"a\uFEFF");
  CHECK(decode_text("a\r\nb\rc\n\r\n", "file") == U"a\nb\rc\n\n");
}

TEST_CASE("every code point of one to three bytes survives") {
  for (char32_t point = 1; point < 0x10000; ++point)
    if (point < 0xd800 || point > 0xdfff) {
      if (const std::u32string back = decode_text("a" + encode_utf8(point), "file");
          back != std::u32string{U'a', point})
        CHECK(back == U"");
    }
}

TEST_CASE("bytes that are no UTF-8 are refused with their place") {
  const auto all = damaged_texts();
  CHECK(all.size() >= 40);
  for (const Damage& damage : all) {
    const std::string text = refusal(damage.bytes);
    CAPTURE(text);
    CAPTURE(damage.place);
    CHECK(text.starts_with("file: byte " + std::to_string(damage.place) + " (line "));
  }
  CHECK(refusal("one\ntwo\n\xe4")
            .starts_with("file: byte 8 (line 3) is e4, which is not valid UTF-8. Convert the file: iconv"));
  CHECK(refusal("\xff\xfe" + "a\0"s) ==
        "file: byte 0 (line 1) is ff, which begins UTF-16 text. Convert the file: iconv -f UTF-16 -t UTF-8 FILE");
  const std::pair<std::string, const char*> kinds[] = {
      {"\xff\xfe\0\0a\0\0\0"s, "iconv -f UTF-32 -t UTF-8 FILE"},
      {"\0\0\xfe\xff\0\0\0a"s, "iconv -f UTF-32 -t UTF-8 FILE"},
      {"\xff\xfe"
       "a\0\0"s,
       "iconv -f UTF-16 -t UTF-8 FILE"},
      {"a\0,\0b\0"s, "iconv -f UTF-16LE -t UTF-8 FILE"},
      {"\0a\0,\0b"s, "iconv -f UTF-16BE -t UTF-8 FILE"},
      {"a\0\0\0,\0\0\0"s, "iconv -f UTF-32LE -t UTF-8 FILE"},
      {"\0\0\0a\0\0\0,"s, "iconv -f UTF-32BE -t UTF-8 FILE"},
      {"BZh91AY&SY\xd4", "compressed by bzip2. Decompress it: bzip2 -dc FILE"},
      {"\xfd"
       "7zXZ\0"s,
       "compressed by xz. Decompress it: xz -dc FILE"},
      {"\x28\xb5\x2f\xfd\x04", "compressed by zstd. Decompress it: zstd -dc FILE"},
      {"\x80\x04\x95", "a pickle"},
      {"a.csv" + std::string(252, '\0') + "ustar\0"s, "a tar archive. Extract the file: tar -xf FILE"}};
  for (const auto& [bytes, kind] : kinds) CHECK_MESSAGE(refusal(bytes).find(kind) != std::string::npos, refusal(bytes));
  for (const char* text : {"BZh", "BZh9", "BZhang\n"}) CHECK(refusal(text) == "accepted");
}

TEST_CASE("what is not a file") {
  const Folder folder;
  CHECK_THROWS_AS(read_text((folder.path / "absent").string()), Error);
  CHECK_THROWS_AS(read_text(folder.path.string()), Error);
  CHECK_THROWS_AS(read_text("/dev/zero"), Error);
  scratch::write(folder.path / "there",
                 "gr\xc3\xbc\xc3\x9f"
                 "e\n");
  CHECK(read_text((folder.path / "there").string()) == U"grüße\n");
}

TEST_CASE("lines, their blanks, their ends and the unknown word") {
  const std::u32string text = U" a <unk> b \n\n  c<unk><unk> \nlast ";
  using Trim = LineRules::Trim;
  const auto take = [&](const LineRules& rules) { return lines_joined(take_lines(text, rules)); };
  CHECK(take({}) == U" a <unk> b ||  c<unk><unk> |last |");
  CHECK(take({.trim = Trim::end}) == U" a <unk> b||  c<unk><unk>|last|");
  CHECK(take({.trim = Trim::both}) == U"a <unk> b||c<unk><unk>|last|");
  CHECK(take({.ends = true}) == U" a <unk> b \n|\n|  c<unk><unk> \n|last |");
  CHECK(take({.ends = true, .last_end = true}) == U" a <unk> b \n|\n|  c<unk><unk> \n|last \n|");
  CHECK(take({.longest = 12}) == U" a <unk> b ||last |");
  CHECK(take({.longest = 11}) == U"|last |");
  std::u32string with_symbol = U" a \x1 b ||  c\x1\x1 |last |";
  for (char32_t& point : with_symbol) point = point == 1 ? unk_symbol : point;
  CHECK(take({.unk = true}) == with_symbol);
  CHECK(take_lines(U"", {}).begins == std::vector<std::size_t>{0});
}
