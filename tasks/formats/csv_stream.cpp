// Whole lines of the file are put behind its header and read as a small file of their own.
#include "tasks/formats/csv_stream.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <stiefel/error.hpp>

namespace stiefel {
namespace {

constexpr std::size_t bytes_at_once = 1 << 16, longest_row = 1 << 26;

/// Where the last complete row of the text ends; `header`: the first one. 0 when there is none.
std::size_t rows_end(std::string_view text, bool header) {
  std::size_t end = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] != '\n' || quoted) continue;
    end = i + 1;
    if (header && text.substr(0, i).find_first_not_of("\r\n") != text.npos) break;
  }
  return end;
}

}  // namespace

CsvStream::CsvStream(const std::string& path, char separator)
    : path_(path), separator_(separator), file_(std::fopen(path.c_str(), "rb")) {
  if (!file_) throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)), Exit::data);
  refill();
}

bool CsvStream::next(std::vector<CsvField>& row) {
  while (!reader_->next(row))
    if (!refill()) return false;
  return true;
}

bool CsvStream::refill() {
  const bool first = header_.empty();
  if (!first) lines_ += std::size_t(std::count(rows_.begin(), rows_.end(), '\n'));
  rows_ = std::move(rest_);
  rest_.clear();
  std::size_t end = 0;
  bool ended = false;
  while (end == 0 && !ended) {
    const std::size_t before = rows_.size();
    rows_.resize(before + bytes_at_once);
    rows_.resize(before + std::fread(rows_.data() + before, 1, bytes_at_once, file_.get()));
    ended = rows_.size() == before;
    if (std::ferror(file_.get())) throw Error(fmt::format("{}: {}", path_, std::strerror(errno)), Exit::data);
    if (rows_.size() > longest_row)
      throw Error(fmt::format("{}: a row of more than {} MB: a quote may not be closed", path_, longest_row >> 20),
                  Exit::data);
    end = ended ? rows_.size() : rows_end(rows_, false);
  }
  if (end == 0 && !first) return false;
  rest_ = rows_.substr(end);
  rows_.resize(end);
  if (first) {
    header_ = rows_.substr(0, std::max(rows_end(rows_, true), rows_.find('\n') == rows_.npos ? rows_.size() : 0));
    rows_.erase(0, header_.size());
  }
  bytes_ = header_ + rows_;
  reader_.emplace(bytes_, path_, separator_, lines_);
  return true;
}

}  // namespace stiefel
