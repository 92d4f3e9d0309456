/// progress.jsonl: one JSON object per line, complete as soon as it is written, for `tail -f` and for the last minutes
/// before a crash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <stiefel/export.hpp>

#include "base/descriptor.hpp"

namespace stiefel {

class STIEFEL_API ProgressLog {
 public:
  /// Appends to the file. `after`: the step after which a run resumes; later lines, and one that a crash has torn, are
  /// removed, and {"resumed_after", "wall_time"} is written.
  explicit ProgressLog(std::filesystem::path path, std::optional<std::int64_t> after = {});

  /// {"step", "wall_time" (seconds since 1970), "step_seconds", then the values by name}; NaN and infinities become
  /// null. A line that does not fit on the disk is taken back whole, and Error (Exit::exhausted) thrown.
  void write(std::int64_t step, double step_seconds, std::span<const std::pair<std::string, double>> values);

 private:
  void cut(std::int64_t after);
  void append(const std::string& text);

  std::filesystem::path path_;
  Descriptor file_;
};

}  // namespace stiefel
