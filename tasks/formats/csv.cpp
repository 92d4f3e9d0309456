// Reads a row at a time; nothing of a row is kept but what its fields point to.
#include "tasks/formats/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include <stiefel/error.hpp>
#include "tasks/formats/text.hpp"

namespace stiefel {

namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  const std::size_t first = text.find_first_not_of(blanks);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Whether the text is a number but for its commas.
bool has_commas(std::string_view text) {
  std::string without(text);
  double value = 0;
  return std::erase(without, ',') > 0 && parse_number(without, value);
}

}  // namespace

bool is_missing(std::string_view text) {
  constexpr std::string_view spellings[] = {"NA",   "N/A",  "n/a", "#N/A",  "#NA",     "<NA>",
                                            "NaN",  "nan",  "NAN", "-NaN",  "-nan",    "NULL",
                                            "null", "None", "\\N", "#NUM!", "#VALUE!", "#DIV/0!"};
  return std::ranges::find(spellings, without_blanks(text)) != std::end(spellings);
}

bool parse_number(std::string_view text, double& value) {
  text = without_blanks(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range && end == text.data() + text.size()) {  // 1e999, or 1e-999, which is 0
    value = std::strtod(std::string(text).c_str(), nullptr);
    return std::abs(value) < 1;
  }
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

std::string shown(std::string_view text) {
  constexpr std::size_t most = 40;
  std::string cut(text.substr(0, most));
  while (text.size() > most && !cut.empty() && (cut.back() & 0xc0) == 0x80) cut.pop_back();  // no half of a character
  if (text.size() > most && !cut.empty() && (cut.back() & 0x80)) cut.pop_back();
  std::replace_if(
      cut.begin(), cut.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return fmt::format("\"{}{}\"", cut, text.size() > most ? "…" : "");
}

CsvReader::CsvReader(std::string_view bytes, std::string file, char separator, std::size_t left_out)
    : bytes_(bytes),
      file_(std::move(file)),
      separator_(separator),
      left_out_(left_out),
      next_(bytes.starts_with(byte_order_mark) ? byte_order_mark.size() : 0) {
  if (const std::string_view other = other_than_text(bytes); !other.empty())
    refuse(0, fmt::format("begins as {}", other));
  if (const std::size_t zero = bytes.find('\0'); zero != bytes.npos)
    refuse(zero, "a zero byte, which a CSV file cannot have");
  if (const std::size_t wrong = first_not_utf8(bytes); wrong != bytes.npos)
    refuse(wrong, fmt::format("byte {:02x}, {}", static_cast<unsigned char>(bytes[wrong]), not_utf8));
  if (const std::string_view line = bytes.substr(next_, bytes.find_first_of("\r\n", next_) - next_);
      line.size() == 5 && line.starts_with("sep="))
    refuse(
        0,
        "the line `sep=` is for Excel only; remove it, and set the task's `separator` to the character that it names");
  std::vector<CsvField> row;
  if (!fields(row)) refuse(0, "no header: the first line must name the columns");
  std::set<std::string_view> names;
  for (const CsvField& field : row) {
    if (field.text.empty())
      refuse(field.offset,
             fmt::format("column {} of the header has no name; {}", header_.size() + 1,
                         header_.empty() ? "if it numbers the rows, write the file without it: index=False in "
                                           "pandas, row.names=FALSE in R"
                                         : "name it, or remove it, or the separators at the ends of lines"));
    if (!names.insert(field.text).second)
      refuse(field.offset,
             fmt::format("the header has column {} twice; the first line must name the columns", shown(field.text)));
    header_.emplace_back(field.text);
  }
  header_end_ = next_;
}

std::size_t CsvReader::column(const std::string& name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  if (found != header_.end()) return std::size_t(found - header_.begin());
  const bool other = header_.size() == 1 && header_[0].find_first_of(",;\t|") != std::string::npos;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(header_.size(), 20); ++i) names.push_back(shown(header_[i]));
  refuse(0, fmt::format("there is no column {}; the header has {}{}{}", shown(name), fmt::join(names, ", "),
                        names.size() < header_.size() ? ", …" : "",
                        other ? fmt::format(": does the file use a separator other than '{}'?", separator_) : ""));
}

std::string CsvReader::name(const CsvField& field, std::size_t column) const {
  if (field.text.empty())
    refuse(field.offset,
           fmt::format("column {} is empty; it must name the sequence of this row", shown(header_[column])));
  if (is_missing(field.text))
    refuse(field.offset, fmt::format("column {} holds {}, a missing value, but must name the sequence of this row; "
                                     "rename the sequence if this is its name",
                                     shown(header_[column]), shown(field.text)));
  return std::string(field.text);
}

bool CsvReader::next(std::vector<CsvField>& row) {
  if (!fields(row)) return false;
  if (row.size() != header_.size())
    refuse(row.front().offset,
           fmt::format("{} fields, but the header has {} columns{}", row.size(), header_.size(), hint(row)));
  return true;
}

/// For the message on a row that does not fit the header: what may be wrong.
std::string CsvReader::hint(const std::vector<CsvField>& row) const {
  if (row.front().text.starts_with('#') || header_.front().starts_with('#'))
    return "; lines that begin with # are no comments here: remove them";
  if (row.size() != header_.size() + 1) return "";
  if (row.back().text.empty()) return "; remove the separators at the ends of lines";
  const std::string_view before = bytes_.substr(header_end_, row.front().offset - header_end_);
  const bool first = left_out_ == 0 && before.find_first_not_of("\r\n") == before.npos;
  return first ? "; if the first field is the name of the row, write the file without row names: row.names=FALSE in R"
               : "";
}

/// The line end at the place where the reader is, which then stands behind it.
bool CsvReader::line_end() {
  const char c = ended() ? ' ' : bytes_[next_];
  const std::size_t length = c == '\n' ? 1 : c == '\r' && bytes_.substr(next_, 2) == "\r\n" ? 2 : 0;
  next_ += length;
  return length > 0;
}

bool CsvReader::fields(std::vector<CsvField>& row) {
  row.clear();
  unescaped_.clear();
  while (!ended() && line_end()) {
  }
  if (ended()) return false;
  while (true) {
    row.push_back(!ended() && bytes_[next_] == '"' ? quoted() : plain());
    if (ended() || line_end()) return true;
    if (bytes_[next_] != separator_)
      refuse(next_, fmt::format("characters between a field's closing quote and the separator{}",
                                bytes_.substr(0, next_).ends_with("\\\"")
                                    ? "; a quote within quotes is written twice, not behind a backslash: "
                                      "qmethod=\"double\" in R"
                                    : ""));
    ++next_;
  }
}

CsvField CsvReader::plain() {
  const std::size_t first = next_;
  for (; !ended() && bytes_[next_] != separator_ && bytes_[next_] != '\n'; ++next_) {
    if (bytes_[next_] != '\r') continue;
    if (bytes_.substr(next_, 2) == "\r\n") break;
    refuse(next_, "a carriage return inside a line; convert the file's line ends");
  }
  return {bytes_.substr(first, next_ - first), first};
}

CsvField CsvReader::quoted() {
  const std::size_t first = next_++;
  std::size_t from = next_;
  std::string* whole = nullptr;
  while (true) {
    const std::size_t quote = bytes_.find('"', next_);
    if (quote == bytes_.npos) refuse(first, "a quote that is never closed");
    const bool doubled = bytes_.substr(quote + 1, 1) == "\"";
    if (doubled && !whole) whole = &unescaped_.emplace_back();
    if (whole) whole->append(bytes_.substr(from, quote + doubled - from));
    next_ = quote + 1 + doubled;
    if (!doubled) return {whole ? std::string_view(*whole) : bytes_.substr(from, quote - from), first};
    from = next_;
  }
}

double CsvReader::number(const CsvField& field, std::size_t column) const {
  double value = 0;
  if (!parse_number(field.text, value))
    refuse(field.offset,
           fmt::format("column {} holds {}, expected a finite number{}", shown(header_[column]), shown(field.text),
                       has_commas(field.text) ? "; write it with a decimal point and without commas" : ""));
  return value;
}

double CsvReader::input(const CsvField& field, std::size_t column, bool gaps) const {
  double value = 0;
  if (parse_number(field.text, value)) return value;
  const std::string_view text = without_blanks(field.text);
  const auto advise = [&](std::string_view advice) {
    refuse(field.offset, fmt::format("column {} holds {}, expected a finite number; {}", shown(header_[column]),
                                     shown(field.text), advice));
  };
  if (text.empty() || is_missing(text)) {
    if (!gaps) advise(gaps_advice);
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (boost::iequals(text, "true") || boost::iequals(text, "false")) advise("write 1 for true and 0 for false");
  if (!has_commas(text)) advise("to leave the column out, name the others in `features`");
  return number(field, column);
}

std::string CsvReader::place(std::size_t offset) const {
  const std::string_view before = bytes_.substr(0, offset);
  const std::size_t line = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  const auto begins_character = [](char c) { return (c & 0xc0) != 0x80; };
  return fmt::format(
      "{}:{}:{}", file_,
      std::size_t(std::count(before.begin(), before.end(), '\n')) + 1 + (offset < header_end_ ? 0 : left_out_),
      std::count_if(before.begin() + std::ptrdiff_t(line), before.end(), begins_character) + 1);
}

void CsvReader::refuse(std::size_t offset, const std::string& what) const {
  throw Error(fmt::format("{}: {}", place(offset), what), Exit::data);
}

}  // namespace stiefel
