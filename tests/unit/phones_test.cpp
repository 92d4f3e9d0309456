// TIMIT's transcriptions: what is read, how labels are folded, and that damaged files are refused with a sentence.
#include <doctest/doctest.h>
#include <algorithm>
#include <map>
#include <set>

#include <stiefel/error.hpp>
#include "sound_files.hpp"
#include "tasks/formats/phones.hpp"

using namespace stiefel;
using namespace sound_files;

namespace {

const std::string mend = "Fetch it again.";

std::string refusal(const std::string& text) {
  try {
    parse_phones(text, "a.phn", mend);
  } catch (const Error& error) {
    const std::string sentence = error.what(), begin = "a.phn: ", end = ". " + mend;
    CHECK(error.code() == Exit::data);
    REQUIRE(sentence.starts_with(begin));
    REQUIRE(sentence.ends_with(end));
    return sentence.substr(begin.size(), sentence.size() - begin.size() - end.size());
  }
  return "accepted";
}

std::string class_of(std::string_view label) {
  const auto found = std::find(phone_labels.begin(), phone_labels.end(), label);
  REQUIRE(found != phone_labels.end());
  const std::int32_t folded = folded_phone(std::int32_t(found - phone_labels.begin()));
  return folded < 0 ? "none" : std::string(folded_phone_labels.at(std::size_t(folded)));
}

}  // namespace

TEST_CASE("lines of start, end and label") {
  const std::vector<Phone> phones = parse_phones("0 2260 h#\n2260 4070 sh\n4100 5265 ax-h\n", "a.phn", mend);
  REQUIRE(phones.size() == 3);
  CHECK((phones[1].start == 2260 && phones[1].end == 4070 && phone_labels[std::size_t(phones[1].label)] == "sh"));
  CHECK(phone_labels[std::size_t(phones[2].label)] == "ax-h");
  CHECK(parse_phones("0 2260 h#\r\n2260\t4070  sh\r\n\r\n\n", "a.phn", mend).size() == 2);
  CHECK(parse_phones("  5 7 zh", "a.phn", mend)[0].start == 5);
  CHECK(parse_phones("0 2147483647 h#", "a.phn", mend)[0].end == 2147483647);
}

TEST_CASE("the phone at a sample") {
  const std::vector<Phone> phones = parse_phones("10 20 h#\n20 30 sh\n40 50 iy", "a.phn", mend);
  const auto at = [&](std::int64_t sample) {
    const std::int32_t label = phone_at(phones, sample);
    return label < 0 ? std::string("none") : std::string(phone_labels[std::size_t(label)]);
  };
  CHECK(at(9) == "none");
  CHECK(at(10) == "h#");
  CHECK(at(19) == "h#");
  CHECK(at(20) == "sh");
  CHECK(at(29) == "sh");
  CHECK(at(30) == "none");
  CHECK(at(39) == "none");
  CHECK(at(40) == "iy");
  CHECK(at(50) == "iy");  // the last phone lasts until the sound ends
  CHECK(at(1000) == "iy");
}

TEST_CASE("labels") {
  CHECK(std::is_sorted(phone_labels.begin(), phone_labels.end()));
  CHECK(std::is_sorted(folded_phone_labels.begin(), folded_phone_labels.end()));
  CHECK(std::set<std::string_view>(phone_labels.begin(), phone_labels.end()).size() == 61);
  std::map<std::string, int> sizes;
  for (const std::string_view label : phone_labels) ++sizes[class_of(label)];
  CHECK(sizes.size() == 40);
  CHECK(sizes["none"] == 1);
  CHECK(class_of("q") == "none");
  const std::map<std::string, int> expected = {{"aa", 2}, {"ah", 3}, {"er", 2}, {"hh", 2}, {"ih", 2}, {"l", 2},
                                               {"m", 2},  {"n", 3},  {"ng", 2}, {"sh", 2}, {"uw", 2}, {"sil", 9}};
  for (const auto& [name, size] : sizes) {
    CAPTURE(name);
    CHECK(size == (expected.contains(name) ? expected.at(name) : 1));
  }
  const std::map<std::string, std::string> some = {
      {"ao", "aa"},   {"ax", "ah"},   {"ax-h", "ah"}, {"axr", "er"}, {"hv", "hh"}, {"ix", "ih"}, {"el", "l"},
      {"em", "m"},    {"en", "n"},    {"nx", "n"},    {"eng", "ng"}, {"zh", "sh"}, {"ux", "uw"}, {"h#", "sil"},
      {"pau", "sil"}, {"epi", "sil"}, {"tcl", "sil"}, {"dx", "dx"},  {"iy", "iy"}, {"dh", "dh"}};
  for (const auto& [label, folded] : some) CHECK(class_of(label) == folded);
}

TEST_CASE("damaged transcriptions are refused") {
  const std::string form = "expected `start end label` with two sample numbers";
  const std::vector<std::pair<std::string, std::string>> all = {
      {"it has no phones", ""},
      {"it has no phones", "\n\n\r\n"},
      {"it has no phones", "   \t "},
      {form, "0"},
      {form, "0 10"},
      {form, "0 10\nh#"},
      {form, "0 10 "},
      {form, "h# 0 10"},
      {form, "0 h# 10"},
      {form, "0 10 h# 5"},
      {form, "0 10 h# h#"},
      {form, "-1 10 h#"},
      {form, "0 -10 h#"},
      {form, "+0 10 h#"},
      {form, "0.0 10 h#"},
      {form, "0 1e3 h#"},
      {form, "0x0 10 h#"},
      {form, "0 10x h#"},
      {form, "0,10,h#"},
      {form, "0 2147483648 h#"},
      {form, "2147483648 3000000000 h#"},
      {form, "0 99999999999999999999999999999 h#"},
      {form, "18446744073709551616 18446744073709551617 h#"},
      {form, "0 10 h#\n10"},
      {form, std::string("0 10 h#\0 1", 10)},
      {form, "<!DOCTYPE html>"},
      {form,
       "\xef\xbb\xbf"
       "0 10 h#"},
      {form, "RIFF"},
      {form, std::string(1000000, 'x')},
      {form, std::string(100, '\x01')},
      {"line 1 has the label \"H#\"", "0 10 H#"},
      {"line 1 has the label \"sil\"", "0 10 sil"},
      {"line 2 has the label \"aaa\"", "0 10 h#\n10 20 aaa"},
      {"line 1 has the label \"a\"", "0 10 a"},
      {"line 1 has the label \"?\"", "0 10 \x7f"},
      {"line 1 has the label \"h#;\", which is not one of TIMIT's 61", "0 10 h#;"},
      {"line 1 has the label \"" + std::string(40, 'z') + "…\"", "0 10 " + std::string(5000, 'z')},
      {"line 1: the phone ends at sample 10, not after its start at 10", "10 10 h#"},
      {"line 1: the phone ends at sample 0, not after its start at 10", "10 0 h#"},
      {"line 3: the phone ends at sample 25, not after its start at 30", "0 10 h#\n10 20 sh\n30 25 iy"},
      {"line 2: the phone starts at sample 9, before the previous one ends at 10", "0 10 h#\n9 20 sh"},
      {"line 2: the phone starts at sample 0, before", "0 10 h#\n0 10 h#"},
      {"line 4: the phone starts at sample 0, before", "0 10 h#\n\n\n0 20 sh"},
  };
  CHECK(all.size() >= 40);
  for (const auto& [sentence, text] : all) {
    CAPTURE(sentence);
    const std::string answer = refusal(text);
    CAPTURE(answer);
    CHECK(answer.find(sentence) != std::string::npos);
    CHECK(answer.size() < 200);
  }
}

TEST_CASE("files") {
  const Folder folder;
  const auto refused = [&](const std::filesystem::path& path) {
    try {
      read_phones(path.string(), mend);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  write(folder.path / "a.phn", "0 10 h#\n");
  CHECK(read_phones((folder.path / "a.phn").string(), mend).size() == 1);
  CHECK(refused(folder.path / "b.phn").ends_with("b.phn: No such file or directory. Fetch it again."));
  write(folder.path / "large.phn", std::string((1 << 24) + 1, '\n'));
  CHECK(refused(folder.path / "large.phn")
            .ends_with("has 16777217 bytes, but such a file can have at most 16777216. Fetch it again."));
}
