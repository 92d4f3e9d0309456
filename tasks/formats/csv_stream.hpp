/// Rows of a CSV file of any length, also compressed by gzip or from a pipe, in memory for some of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tasks/formats/csv.hpp"
#include "tasks/formats/inflate.hpp"

namespace stiefel {

/// Where the rows of a file end, byte by byte. As for CsvReader, a quote begins a quoted field only at its start.
class CsvRowEnds {
 public:
  explicit CsvRowEnds(char separator) : separator_(separator) {}

  /// Whether a row ends with this byte, which follows the one of the last call.
  bool ends(char c);
  /// Whether the row that ended last was a blank line.
  bool blank() const { return blank_; }

 private:
  enum class At { row, field, plain, quoted, closed } at_ = At::row;  // row, field: at their start
  char separator_;
  bool blank_ = true;
};

class CsvStream {
 public:
  /// Error(Exit::data) when the file cannot be read or has no header.
  CsvStream(const std::string& path, char separator);

  const CsvReader& reader() const { return *reader_; }
  /// False after the last row. The fields are valid until the next call.
  bool next(std::vector<CsvField>& row);

 private:
  /// Replaces the rows in memory by the next ones; false at the end of the file. `header`: bytes up to its end, found
  /// when 0.
  bool read_rows(std::size_t& header);
  void start_reader();

  std::string header_, rows_, rest_;
  char separator_;
  GzipFile file_;
  CsvRowEnds row_ends_;    // at the end of rest_
  std::size_t lines_ = 0;  // of the file before rows_, without the header's
  std::string bytes_;
  std::optional<CsvReader> reader_;
};

}  // namespace stiefel
