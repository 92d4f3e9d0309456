// Reads .phn files, and folds their labels as is usual.
#include "tasks/formats/phones.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "tasks/formats/csv.hpp"
#include "tasks/formats/named_file.hpp"

namespace stiefel {

const std::array<std::string_view, 61> phone_labels = {
    "aa", "ae", "ah", "ao",  "aw",  "ax",  "ax-h", "axr", "ay", "b",  "bcl", "ch", "d",   "dcl", "dh", "dx",
    "eh", "el", "em", "en",  "eng", "epi", "er",   "ey",  "f",  "g",  "gcl", "h#", "hh",  "hv",  "ih", "ix",
    "iy", "jh", "k",  "kcl", "l",   "m",   "n",    "ng",  "nx", "ow", "oy",  "p",  "pau", "pcl", "q",  "r",
    "s",  "sh", "t",  "tcl", "th",  "uh",  "uw",   "ux",  "v",  "w",  "y",   "z",  "zh"};

const std::array<std::string_view, 39> folded_phone_labels = {
    "aa", "ae", "ah", "aw", "ay",  "b",  "ch", "d",  "dh", "dx", "eh", "er", "ey",
    "f",  "g",  "hh", "ih", "iy",  "jh", "k",  "l",  "m",  "n",  "ng", "ow", "oy",
    "p",  "r",  "s",  "sh", "sil", "t",  "th", "uh", "uw", "v",  "w",  "y",  "z"};

namespace {

// Labels whose class has another name.
constexpr std::pair<std::string_view, std::string_view> foldings[] = {
    {"ao", "aa"},   {"ax", "ah"},   {"ax-h", "ah"}, {"axr", "er"},  {"hv", "hh"},   {"ix", "ih"},
    {"el", "l"},    {"em", "m"},    {"en", "n"},    {"nx", "n"},    {"eng", "ng"},  {"zh", "sh"},
    {"ux", "uw"},   {"pcl", "sil"}, {"tcl", "sil"}, {"kcl", "sil"}, {"bcl", "sil"}, {"dcl", "sil"},
    {"gcl", "sil"}, {"h#", "sil"},  {"pau", "sil"}, {"epi", "sil"}, {"q", ""}};

template <class Labels> std::int32_t place_of(const Labels& labels, std::string_view label) {
  const auto found = std::lower_bound(labels.begin(), labels.end(), label);
  return found != labels.end() && *found == label ? std::int32_t(found - labels.begin()) : -1;
}

constexpr std::string_view blanks = " \t\r\v\f";

// Takes the next word off the front of a line.
std::string_view next_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(blanks), line.size());
  const std::size_t end = std::min(line.find_first_of(blanks, begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

std::optional<std::int64_t> number_of(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = fault == std::errc() && end == word.data() + word.size();
  return whole && value >= 0 && value <= std::numeric_limits<std::int32_t>::max() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::int32_t folded_phone(std::int32_t label) {
  const std::string_view name = phone_labels.at(std::size_t(label));
  const auto found =
      std::find_if(std::begin(foldings), std::end(foldings), [&](const auto& pair) { return pair.first == name; });
  return place_of(folded_phone_labels, found == std::end(foldings) ? name : found->second);
}

std::vector<Phone> parse_phones(std::string_view text, const std::string& name, const std::string& mend) {
  const NamedFile file{name, mend};
  std::vector<Phone> phones;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    ++number;
    std::string_view line = whole;
    const std::string_view start_word = next_word(line), end_word = next_word(line), label_word = next_word(line);
    if (start_word.empty()) continue;
    const std::optional<std::int64_t> start = number_of(start_word), end = number_of(end_word);
    if (!start || !end || label_word.empty() || !next_word(line).empty())
      file.refuse(
          fmt::format("line {} is {}, expected `start end label` with two sample numbers", number, shown(whole)));
    const std::int32_t label = place_of(phone_labels, label_word);
    if (label < 0)
      file.refuse(fmt::format("line {} has the label {}, which is not one of TIMIT's 61", number, shown(label_word)));
    if (*end <= *start)
      file.refuse(fmt::format("line {}: the phone ends at sample {}, not after its start at {}", number, *end, *start));
    if (!phones.empty() && *start < phones.back().end)
      file.refuse(fmt::format("line {}: the phone starts at sample {}, before the previous one ends at {}", number,
                              *start, phones.back().end));
    phones.push_back({*start, *end, label});
  }
  if (phones.empty()) file.refuse("it has no phones");
  return phones;
}

std::vector<Phone> read_phones(const std::string& path, const std::string& mend) {
  return parse_phones(bytes_of({path, mend}, std::uint64_t(1) << 24), path, mend);
}

std::int32_t phone_at(std::span<const Phone> phones, std::int64_t sample) {
  const auto after = std::upper_bound(phones.begin(), phones.end(), sample,
                                      [](std::int64_t s, const Phone& p) { return s < p.start; });
  if (after == phones.begin()) return -1;
  const Phone& phone = *(after - 1);
  return sample < phone.end || after == phones.end() ? phone.label : -1;
}

}  // namespace stiefel
