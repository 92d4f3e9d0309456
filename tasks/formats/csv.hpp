/// CSV files as of RFC 4180: a header, then rows of as many fields; fields with the separator, quotes or line ends in
/// them are quoted.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace stiefel {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

struct CsvField {
  std::string_view text;   ///< without quotes; valid until the next row is asked for
  std::size_t offset = 0;  ///< of its first byte in the file
};

/// Row by row from bytes that outlive it. Blank lines are passed over, "\r\n" ends a line like "\n", a byte order mark
/// is left out. Error(Exit::data) names file:line:column, also of a byte that is not UTF-8.
class CsvReader {
 public:
  /// `left_out`: lines that the file has between the header and the bytes behind it.
  CsvReader(std::string_view bytes, std::string file, char separator, std::size_t left_out = 0);

  const std::vector<std::string>& header() const { return header_; }
  /// Number of the column with this name; refuses one that is not there.
  std::size_t column(const std::string& name) const;

  /// False after the last row.
  bool next(std::vector<CsvField>& row);

  /// The finite number in a field, blanks around it apart.
  double number(const CsvField& field, std::size_t column) const;
  /// The same of an input, NaN for a missing one if there may be gaps; says how to write what is no number.
  double input(const CsvField& field, std::size_t column, bool gaps) const;
  /// The name in a field; refuses an empty one and one that stands for a missing value.
  std::string name(const CsvField& field, std::size_t column) const;
  [[noreturn]] void refuse(std::size_t offset, const std::string& what) const;
  /// "file:line:column"
  std::string place(std::size_t offset) const;

 private:
  bool fields(std::vector<CsvField>& row);
  CsvField quoted();
  CsvField plain();
  bool ended() const { return next_ >= bytes_.size(); }
  bool line_end();
  std::string hint(const std::vector<CsvField>& row) const;

  std::string_view bytes_;
  std::string file_;
  char separator_;
  std::size_t left_out_, header_end_ = 0, next_ = 0;
  std::vector<std::string> header_;
  std::deque<std::string> unescaped_;  // fields of the row that held quotes
};

/// The number that the text is, blanks around it apart; false if it is none or not finite.
bool parse_number(std::string_view text, double& value);

/// Whether the text, blanks around it apart, is how pandas, R, a database or a spreadsheet writes that there is no value.
bool is_missing(std::string_view text);

/// What to do about a missing input.
constexpr std::string_view gaps_advice = "fill it first, or set `missing: forward` or `missing: mask`";

/// As it may stand in a message: quoted, cut, without control characters.
std::string shown(std::string_view text);

}  // namespace stiefel
