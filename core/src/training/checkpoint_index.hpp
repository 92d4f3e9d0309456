// checkpoints/index.json: which checkpoints of a run are intact, with the sizes and checksums that they were written with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/matrix.hpp>

namespace stiefel {

struct CheckpointEntry {
  Index step = 0;
  std::uint64_t bytes = 0;
  std::string sum;  // SHA-256, 64 hexadecimal digits

  std::string file() const;  // step_N.h5
};

/// A run has an index from its start: a missing one has been lost.
bool has_checkpoint_index(const std::filesystem::path& run);
/// Entries in increasing order of steps; empty if there is no index. Error (Exit::damaged) when it cannot be read.
std::vector<CheckpointEntry> read_checkpoint_index(const std::filesystem::path& run);
/// The same from the text of the file at `path`.
std::vector<CheckpointEntry> parse_checkpoint_index(std::string_view text, const std::filesystem::path& path);

/// Replaces the index.
void write_checkpoint_index(const std::filesystem::path& run, const std::vector<CheckpointEntry>& entries);

}  // namespace stiefel
