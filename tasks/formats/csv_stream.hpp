/// Rows of a CSV file of any length, also from a pipe, in memory for some of them.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasks/formats/csv.hpp"

namespace stiefel {

class CsvStream {
 public:
  /// Error(Exit::data) when the file cannot be read or has no header.
  CsvStream(const std::string& path, char separator);

  const CsvReader& reader() const { return *reader_; }
  /// False after the last row. The fields are valid until the next call.
  bool next(std::vector<CsvField>& row);

 private:
  /// Replaces the rows in memory by the next ones; false at the end of the file.
  bool refill();

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_, header_, rows_, rest_;
  char separator_;
  std::unique_ptr<std::FILE, Close> file_;
  std::size_t lines_ = 0;  // of the file before rows_, without the header's
  std::string bytes_;
  std::optional<CsvReader> reader_;
};

}  // namespace stiefel
