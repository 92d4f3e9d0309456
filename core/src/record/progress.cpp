// progress.jsonl: one write call per line, so that a reader never sees half of one.
#include "record/progress.hpp"

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/file_content.hpp"
#include "base/file_error.hpp"
#include "base/json_text.hpp"
#include "base/sha256.hpp"
#include "record/header_file.hpp"

namespace stiefel {

namespace {

constexpr std::string_view key_of_check = R"(,"check":")";

/// What ends a line: "check" is eight digits of the SHA-256 of the run's name and of the line before this key.
std::string end_of_line(const std::string& name, std::string_view line) {
  return std::string(key_of_check) + sha256((name + "\n").append(line)).substr(0, 8) + "\"}";
}

/// Whether a line is a whole JSON object that belongs to a step up to `step`.
bool is_until(std::string_view line, std::int64_t step) {
  const nlohmann::json object = parse_json_or_discard(line);
  if (!object.is_object()) return false;
  const auto number = object.find(object.contains("step") ? "step" : "resumed_after");
  return number != object.end() && number->is_number() && *number <= step;
}

}  // namespace

std::string name_of_run(const std::filesystem::path& run) { return weakly_canonical(run).filename().string(); }

bool is_progress_of(const std::string& name, std::string_view line) {
  const std::size_t end = line.rfind(key_of_check);
  return end == line.npos || line.substr(end) == end_of_line(name, line.substr(0, end));
}

ProgressLog::ProgressLog(std::filesystem::path path, std::optional<std::int64_t> after)
    : path_(std::move(path)),
      name_(name_of_run(path_.parent_path())),
      file_(open_file(path_, O_WRONLY | O_CREAT | O_APPEND)) {
  if (!after) return;
  cut(*after);
  append(json_text(nlohmann::ordered_json{{"resumed_after", *after}, {"wall_time", seconds_since_1970()}}));
}

void ProgressLog::cut(std::int64_t after) {
  const auto size = std::uintmax_t(std::max<off_t>(::lseek(*file_, 0, SEEK_END), 0));
  for (std::uintmax_t bytes = 1 << 16;; bytes *= 4) {
    const std::uintmax_t from = size - std::min(bytes, size);
    const std::string text = file_content(path_, from);
    std::size_t end = text.rfind('\n') + 1;  // 0: no whole line
    bool found = from == 0 && end == 0;
    while (end > 0 && !found) {
      const std::size_t begin = end < 2 ? 0 : text.rfind('\n', end - 2) + 1;
      if (begin == 0 && from > 0) break;  // the line may begin before
      found = is_until(std::string_view(text).substr(begin, end - 1 - begin), after);
      if (!found) end = begin;
    }
    if (!found && from > 0) continue;
    if (from + end < size && ::ftruncate(*file_, off_t(from + end)) != 0) throw file_error("trimming", path_, errno);
    return;
  }
}

void ProgressLog::write(std::int64_t step, double step_seconds,
                        std::span<const std::pair<std::string, double>> values) {
  nlohmann::ordered_json line = {{"step", step}, {"wall_time", seconds_since_1970()}, {"step_seconds", step_seconds}};
  for (const auto& [name, value] : values) line[name] = value;
  append(json_text(line));
}

void ProgressLog::append(std::string line) {
  line.pop_back();  // the }
  const std::string text = line + end_of_line(name_, line) + "\n";
  const off_t before = ::lseek(*file_, 0, SEEK_END);
  ssize_t written;
  do written = ::write(*file_, text.data(), text.size());
  while (written < 0 && errno == EINTR);
  if (written == ssize_t(text.size())) return;
  const int error = written < 0 ? errno : ENOSPC;
  if (written > 0 && ::ftruncate(*file_, before) != 0) throw file_error("trimming", path_, errno);
  throw is_out_of_space(error) ? out_of_space(path_, text.size(), "disk full or limit reached")
                               : file_error("writing", path_, error);
}

}  // namespace stiefel
