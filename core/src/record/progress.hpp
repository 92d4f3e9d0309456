/// progress.jsonl has one JSON object per line. Every line is complete as soon as it is written, for `tail -f` and for
/// the last minutes before a crash. Its last key, "check", tells lines that are damaged or of another run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <stiefel/export.hpp>

#include "base/descriptor.hpp"

namespace stiefel {

/// The name of a run's folder, which "check" depends on.
STIEFEL_API std::string name_of_run(const std::filesystem::path& run);
/// Whether a line is as the run of this name wrote it. Lines without "check" are those of an older version.
STIEFEL_API bool is_progress_of(const std::string& name, std::string_view line);

class STIEFEL_API ProgressLog {
 public:
  /// Appends to the file. `after` is the step after which a run resumes: lines of later steps and a line that a crash
  /// has cut off are removed, and a line {"resumed_after", "wall_time"} is appended.
  explicit ProgressLog(std::filesystem::path path, std::optional<std::int64_t> after = {});

  /// Appends {"step", "wall_time" (seconds since 1970), "step_seconds", then the values by name}; NaN and infinities
  /// become null. If the line does not fit on the disk, removes the part that was written and throws Error
  /// (Exit::exhausted).
  void write(std::int64_t step, double step_seconds, std::span<const std::pair<std::string, double>> values);

 private:
  void cut(std::int64_t after);
  void append(std::string line);

  std::filesystem::path path_;
  std::string name_;
  Descriptor file_;
};

}  // namespace stiefel
