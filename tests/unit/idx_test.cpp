// IDX files: what is read, plain and compressed, and that every damaged one is refused with a sentence.
#include "idx_files.hpp"

#include <doctest/doctest.h>

#include <stiefel/error.hpp>
#include "tasks/formats/idx.hpp"

using namespace stiefel;
using namespace idx_files;
namespace fs = std::filesystem;

namespace {

const std::string mend = "Fetch it again.";
const std::string values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, char(255)};
const std::string good = header({3, 2, 2}) + values;

/// The sentence without the file's name, which must stand at its beginning, and without the mend, which must stand at
/// its end.
std::string refusal(const fs::path& file, std::size_t dimensions = 3) {
  try {
    read_idx(file.string(), dimensions, mend);
  } catch (const Error& error) {
    const std::string text = error.what(), begin = file.string() + ": ", end = ". " + mend;
    CHECK(error.code() == Exit::data);
    REQUIRE(text.starts_with(begin));
    REQUIRE(text.ends_with(end));
    return text.substr(begin.size(), text.size() - begin.size() - end.size());
  }
  return "accepted";
}

struct Damage {
  const char* sentence;
  std::string bytes;
};

std::vector<Damage> damaged_files() {
  std::vector<Damage> all = {
      {"an empty file, expected an IDX file, which begins with 00 00 08 03", ""},
      {"not an IDX file: it begins with 00, expected", std::string(1, '\0')},
      {"not an IDX file: it begins with 00 00 08, expected", good.substr(0, 3)},
      {"not an IDX file: it begins with 01 00 08 03, expected 00 00 08 03", '\x01' + good.substr(1)},
      {"not an IDX file: it begins with 00 01", std::string{'\0', '\x01'} + good.substr(2)},
      {"not an IDX file: it begins with 03 08 00 00", "\x03\x08" + std::string(2, '\0') + good.substr(4)},
      {"not an IDX file: it begins with 89 50 4e 47", "\x89PNG\r\n\x1a\n" + good},
      {"not an IDX file: it begins with 50 4b 03 04", "PK\x03\x04" + good},
      {"not an IDX file: it begins with 3c 21 44 4f", "<!DOCTYPE html><html>Not found</html>"},
      {"an IDX array of 1 dimensions, expected 3", header({12}) + values},
      {"an IDX array of 2 dimensions, expected 3", header({3, 4}) + values},
      {"an IDX array of 4 dimensions, expected 3", header({3, 2, 2, 1}) + values},
      {"an IDX array of 0 dimensions, expected 3", header({}) + values},
      {"an empty array of 0 × 28 × 28 values", header({0, 28, 28})},
      {"an empty array of 3 × 0 × 4 values", header({3, 0, 4}) + values},
      {"an empty array of 3 × 4 × 0 values", header({3, 4, 0}) + values},
      {"the header names 2147483648 × 28 × 28 values, which is impossible", header({1u << 31, 28, 28}) + values},
      {"the header names 4294967295 × 2 × 2", header({~0u, 2, 2}) + values},
      {"the header names 3 × 4294967294 × 2", header({3, ~0u - 1, 2}) + values},
      {"the header names 3 × 2 × 4294967295", header({3, 2, ~0u}) + values},
      {"the header names 4294967295 × 4294967295 × 4294967295", header({~0u, ~0u, ~0u}) + values},
      {"the header names 65536 × 65536 × 65536", header({1u << 16, 1u << 16, 1u << 16}) + values},
      {"the header names 2147483648 × 2147483648 × 4", header({1u << 31, 1u << 31, 4}) + values},  // 2⁶⁴
      {"the header names 1073741825 × 1 × 1", header({(1u << 30) + 1, 1, 1}) + values},
      {"ends after 12 of the 1073741824 values", header({1u << 30, 1, 1}) + values},
      {"ends after 12 of the 47040000 values", header({60000, 28, 28}) + values},
      {"ends after 11 of the 12 values that its header names", good.substr(0, good.size() - 1)},
      {"ends after 0 of the 12 values", good.substr(0, 16)},
      {"continues after the 12 values that its header names", good + '\0'},
      {"continues after the 12 values", good + good},
      {"continues after the 8 values", header({2, 2, 2}) + values},
  };
  for (const char type : {0x00, 0x07, 0x09, 0x0b, 0x0c, 0x0d, 0x0e, 0x7f})
    all.push_back({"an IDX file of values of type ", std::string{'\0', '\0', type, '\x03'} + good.substr(4)});
  for (std::size_t length = 4; length < 16; ++length)
    all.push_back({"ends inside the header, after ", good.substr(0, length)});
  return all;
}

}  // namespace

TEST_CASE("arrays are read, plain, compressed, and compressed in two parts") {
  const Folder folder;
  write(folder.path / "plain", good);
  write_gzip(folder.path / "compressed", good);
  write_gzip(folder.path / "first", good.substr(0, 20));
  write_gzip(folder.path / "second", good.substr(20));
  write(folder.path / "parts", read(folder.path / "first") + read(folder.path / "second"));
  for (const char* name : {"plain", "compressed", "parts"}) {
    const Idx idx = read_idx((folder.path / name).string(), 3, mend);
    CHECK(idx.sizes == std::vector<std::int64_t>{3, 2, 2});
    CHECK(std::string(idx.values.begin(), idx.values.end()) == values);
  }
  const std::string large(3000001, '\x05');
  write_gzip(folder.path / "large", header({3000001}) + large);
  CHECK(read_idx((folder.path / "large").string(), 1, mend).values ==
        std::vector<std::uint8_t>(large.begin(), large.end()));
}

TEST_CASE("a sentence without a mend ends with its full stop") {
  const Folder folder;
  const std::string file = (folder.path / "file").string();
  write(file, good + "more");
  CHECK_THROWS_WITH_AS(read_idx(file, 3, ""), (file + ": continues after the 12 values that its header names.").c_str(),
                       Error);
}

TEST_CASE("damaged files are refused, plain and compressed") {
  const Folder folder;
  const std::vector<Damage> all = damaged_files();
  CHECK(all.size() >= 40);
  for (const Damage& damage : all) {
    CAPTURE(damage.sentence);
    write(folder.path / "plain", damage.bytes);
    CHECK(refusal(folder.path / "plain").starts_with(damage.sentence));
    write_gzip(folder.path / "compressed", damage.bytes);
    CHECK(refusal(folder.path / "compressed").starts_with(damage.sentence));
  }
}

TEST_CASE("what is not a file") {
  const Folder folder;
  CHECK(refusal(folder.path / "absent") == "cannot be opened (No such file or directory)");
  CHECK(refusal(folder.path).starts_with("cannot be read"));
}

TEST_CASE("damage to the compressed data") {
  const Folder folder;
  const fs::path file = folder.path / "damaged.gz";
  write_gzip(file, good);
  const std::string compressed = read(file);
  for (std::size_t length = 1; length < compressed.size(); ++length) {
    CAPTURE(length);
    write(file, compressed.substr(0, length));
    CHECK(refusal(file) != "accepted");
  }
  for (std::size_t place = 10; place < compressed.size(); ++place)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = compressed;
      bytes[place] = char(bytes[place] ^ 1 << bit);
      write(file, bytes);
      std::string values_read;
      try {
        const Idx idx = read_idx(file.string(), 3, mend);
        values_read.assign(idx.values.begin(), idx.values.end());
      } catch (const Error& error) {
        CHECK(error.code() == Exit::data);
        continue;
      }
      CHECK(values_read == values);  // only a bit that means nothing, in the padding of the last byte
    }
}

TEST_CASE("a compressed file that grows without end is left alone after the values of its header") {
  const Folder folder;
  const fs::path file = folder.path / "bomb.gz";
  write_gzip(file, good + std::string(std::size_t(64) << 20, '\0'));
  CHECK(fs::file_size(file) < 100000);
  CHECK(refusal(file) == "continues after the 12 values that its header names");
}
