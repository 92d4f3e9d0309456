/// Paths of the files in the folder of a run.
#pragma once

#include <filesystem>
#include <string>

namespace stiefel {

struct RunFolder {
  std::filesystem::path path;  ///< runs/NAME/ID

  std::filesystem::path config() const { return path / "config.yaml"; }
  std::filesystem::path results() const { return path / "results.h5"; }
  std::filesystem::path progress() const { return path / "progress.jsonl"; }
  std::filesystem::path log() const { return path / "log.txt"; }
  std::filesystem::path lock() const { return path / "lock"; }
  std::filesystem::path checkpoints() const { return path / "checkpoints"; }
  /// Checksums of the files that the run has written.
  std::filesystem::path index() const { return checkpoints() / "index.json"; }
  /// `which` is best, last, diverged or step_N.
  std::filesystem::path network(const std::string& which) const { return checkpoints() / (which + ".h5"); }
};

}  // namespace stiefel
