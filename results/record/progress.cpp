// progress.jsonl: one write call per line, so that a reader never sees half of one.
#include "results/record/progress.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/file_error.hpp"
#include "results/record/header_file.hpp"

namespace stiefel {

ProgressLog::ProgressLog(std::filesystem::path path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) throw file_error("opening", path_, errno);
  const off_t length = ::lseek(file_, 0, SEEK_END);
  char last = '\n';
  const bool torn = length > 0 && ::pread(file_, &last, 1, length - 1) == 1 && last != '\n';
  if (torn && ::write(file_, "\n", 1) != 1) {
    const int error = errno;
    ::close(file_);
    throw file_error("writing", path_, error);
  }
}

ProgressLog::~ProgressLog() { ::close(file_); }

void ProgressLog::write(std::int64_t step, double step_seconds,
                        std::span<const std::pair<std::string, double>> values) {
  nlohmann::ordered_json line = {{"step", step}, {"wall_time", seconds_since_1970()}, {"step_seconds", step_seconds}};
  for (const auto& [name, value] : values) line[name] = value;
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const off_t before = ::lseek(file_, 0, SEEK_END);
  ssize_t written;
  do written = ::write(file_, text.data(), text.size());
  while (written < 0 && errno == EINTR);
  if (written == ssize_t(text.size())) return;
  const int error = written < 0 ? errno : ENOSPC;
  if (written > 0 && ::ftruncate(file_, before) != 0) throw file_error("trimming", path_, errno);
  throw is_out_of_space(error) ? out_of_space(path_, text.size(), "disk full or limit reached")
                               : file_error("writing", path_, error);
}

}  // namespace stiefel
