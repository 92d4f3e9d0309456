// Piano rolls as JSON: what is read, and that everything else is refused with a sentence.
#include "music_files.hpp"

#include "tasks/formats/json_rolls.hpp"

using namespace stiefel;
using namespace music_files;

namespace {

RollSet read(const Bytes& bytes) { return read_json_rolls(bytes, named); }

/// A file whose training pieces are these.
Bytes with(const Bytes& train) { return "{\"train\": " + train + ", \"valid\": [], \"test\": []}"; }

const Bytes good =
    "{\"test\": [[[60]]], \"train\": [[[60, 64, 67], [], [21, 108]], [[72.0], [-1, 72]]], \"valid\": []}";

std::vector<Damage> damages_of_syntax() {
  return {
      {"not JSON, at byte 1", ""},
      {"not JSON, at byte", " \n\t "},
      {"not JSON, at byte", "{"},
      {"not JSON, at byte", "{\"train\""},
      {"not JSON, at byte", "{train: []}"},
      {"not JSON, at byte", "{'train': []}"},
      {"not JSON, at byte", with("[[[60,]]]")},
      {"not JSON, at byte", with("[[[60 61]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: 0 is not a note", with("[[[060]]]")},
      {"not JSON, at byte", with("[[[+60]]]")},
      {"not JSON, at byte", with("[[[60x3c]]]")},
      {"not JSON, at byte", with("[[[NaN]]]")},
      {"not JSON, at byte", with("[[[-Infinity]]]")},
      {"not JSON, at byte", with("[[[1e400]]]")},
      {"not JSON, at byte 4", "{}\n" + zeros(1) + "}"},
      {"not JSON, at byte", with("[[(60, 61)]]")},
      {"not JSON, at byte", "{\"train\": [[[60]]"},
      {"not JSON, at byte", with("[]") + "{}"},
      {"not JSON, at byte", with("[]") + '\0'},
      {"begins as UTF-16 text. Convert the file: iconv", "\xff\xfe{"},
      {"begins as a file compressed by gzip", "\x1f\x8b\x08{}"},
      {"not JSON, at byte", "{\"\xff\": []}"},
      {"not JSON, at byte", "{\"\x01\": []}"},
      {"not JSON, at byte", Bytes(100000, ' ') + "]"},
      {"not JSON, at byte 1", "\x89PNG\r\n\x1a\n"},
      {"not JSON, at byte 1", "<!DOCTYPE html><html>Not found</html>"},
      {"not JSON, at byte", "\x80\x02}q\x01."},
  };
}

std::vector<Damage> damages_of_structure() {
  return {
      {"at the beginning, where an object is expected: there is a list", "[]"},
      {"at the beginning, where an object is expected: there is a list", Bytes(1000000, '[')},
      {"at the beginning, where an object is expected: there is a number", "60"},
      {"at the beginning, where an object is expected: there is null", "null"},
      {"at the beginning, where an object is expected: there is text", "\"train\""},
      {"has no key train", "{}"},
      {"has no key valid", "{\"train\": [], \"test\": []}"},
      {"has no key test", "{\"train\": [], \"validation\": []}"},
      {"the object has a key other than train, valid and test", "{\"Train\": []}"},
      {"the object has a key other than train, valid and test", "{\"\": []}"},
      {"the key valid is given twice", "{\"valid\": [], \"validation\": []}"},
      {"the key train is given twice", "{\"train\": [], \"train\": []}"},
      {"train, where a list of pieces is expected: there is an object", with("{}")},
      {"train, where a list of pieces is expected: there is a number", with("60")},
      {"train, where a list of pieces is expected: there is null", with("null")},
      {"train, piece 1, where a list of notes is expected: there is a number", with("[[60]]")},
      {"train, where a list of steps is expected: there is text", with("[\"piece\"]")},
      {"train, piece 2, step 1, where a MIDI note is expected: there is a list", with("[[], [[[60]]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: there is a list", with("[[[" + Bytes(1000000, '['))},
      {"train, piece 1, step 2, where a MIDI note is expected: there is text", with("[[[], [\"C4\"]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: there is a boolean", with("[[[true]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: there is null", with("[[[null]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: there is an object", with("[[[{\"train\": []}]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: 20 is not a note of a piano, 21 to 108",
       with("[[[20]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: 109 is not a note", with("[[[109]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: -2 is not a note", with("[[[-2]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: 1000 is not a note", with("[[[18446744073709551615]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: -9223372036854775808 is not a note",
       with("[[[-9223372036854775808]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: 60.5 is not a MIDI note", with("[[[60.5]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: 1e+300 is not a MIDI note", with("[[[1e300]]]")},
      {"train, piece 1, step 1, where a MIDI note is expected: 1e+100 is not a MIDI note",
       with("[[[1" + Bytes(100, '0') + "]]]")},
  };
}

}  // namespace

TEST_CASE("pieces, steps and notes") {
  const RollSet rolls = read(good);
  REQUIRE((rolls[0].size() == 2 && rolls[1].empty() && rolls[2].size() == 1));
  const PianoRoll& first = rolls[0][0];
  REQUIRE(first.size() == 3);
  CHECK((first[0].count() == 3 && first[0][39] && first[0][43] && first[0][46]));
  CHECK(first[1].none());
  CHECK((first[2].count() == 2 && first[2][0] && first[2][87]));
  CHECK((rolls[0][1][0] == rolls[0][1][1] && rolls[0][1][0].count() == 1 && rolls[0][1][0][51]));
  CHECK(read("{\"train\": [], \"validation\": [[]], \"test\": []}")[1].size() == 1);
  CHECK(read("\xef\xbb\xbf" + with("[[[60, 60]]]"))[0][0][0].count() == 1);
}

TEST_CASE("everything else is refused") {
  std::vector<Damage> all = damages_of_syntax();
  const std::vector<Damage> more = damages_of_structure();
  all.insert(all.end(), more.begin(), more.end());
  check_damages(all, good, [](const Bytes& bytes) { read(bytes); });
}
