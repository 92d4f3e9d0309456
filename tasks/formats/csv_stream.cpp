// Whole lines of the file are put behind its header and read as a small file of their own.
#include "tasks/formats/csv_stream.hpp"

#include <fmt/format.h>
#include <algorithm>

namespace stiefel {
namespace {

constexpr std::size_t bytes_at_once = 1 << 16, longest_row = 1 << 26;

}  // namespace

bool CsvRowEnds::ends(char c) {
  const bool quoted = at_ == At::quoted;
  if (c == '\n' && !quoted) {
    blank_ = at_ == At::row;
    at_ = At::row;
    return true;
  }
  if (c == '"')
    at_ = quoted ? At::closed : at_ == At::plain ? At::plain : At::quoted;
  else if (c == separator_ && !quoted)
    at_ = At::field;
  else if (!quoted && !(c == '\r' && at_ == At::row))
    at_ = At::plain;
  return false;
}

CsvStream::CsvStream(const std::string& path, char separator)
    : separator_(separator), file_({path, ""}), row_ends_(separator) {
  std::size_t header = 0;
  read_rows(header);
  header_ = rows_.substr(0, header);
  rows_.erase(0, header);
  start_reader();
}

bool CsvStream::next(std::vector<CsvField>& row) {
  while (!reader_->next(row)) {
    lines_ += std::size_t(std::count(rows_.begin(), rows_.end(), '\n'));
    std::size_t header = header_.size();
    if (!read_rows(header)) return false;
    start_reader();
  }
  return true;
}

bool CsvStream::read_rows(std::size_t& header) {
  rows_ = std::move(rest_);
  rest_.clear();
  std::size_t end = 0;
  while (end == 0 || header == 0) {
    const std::size_t before = rows_.size();
    if (!file_.append(rows_, bytes_at_once)) {
      end = rows_.size();
      if (header == 0) header = end;
      break;
    }
    const bool begins = header == 0 && before == 0;
    for (std::size_t i = begins && rows_.starts_with(byte_order_mark) ? byte_order_mark.size() : before;
         i < rows_.size(); ++i) {
      if (!row_ends_.ends(rows_[i])) continue;
      end = i + 1;
      if (header == 0 && !row_ends_.blank()) header = end;
    }
    if (rows_.size() - (header == 0 ? 0 : end) > longest_row)
      file_.name().refuse(fmt::format("a row of more than {} MB: a quote may not be closed", longest_row >> 20));
  }
  rest_ = rows_.substr(end);
  rows_.resize(end);
  return end > 0;
}

void CsvStream::start_reader() {
  bytes_ = header_ + rows_;
  reader_.emplace(bytes_, file_.name().path, separator_, lines_);
}

}  // namespace stiefel
