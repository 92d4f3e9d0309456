/// progress.jsonl: one JSON object per line, complete as soon as it is written, for `tail -f` and for the last minutes
/// before a crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include <stiefel/export.hpp>

namespace stiefel {

class STIEFEL_API ProgressLog {
 public:
  /// Appends to the file, after ending a line that a crash may have torn.
  explicit ProgressLog(std::filesystem::path path);
  ~ProgressLog();
  ProgressLog(const ProgressLog&) = delete;
  ProgressLog& operator=(const ProgressLog&) = delete;

  /// {"step", "wall_time" (seconds since 1970), "step_seconds", then the values by name}; NaN and infinities become
  /// null. A line that does not fit on the disk is taken back whole, and Error (Exit::exhausted) thrown.
  void write(std::int64_t step, double step_seconds, std::span<const std::pair<std::string, double>> values);

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace stiefel
