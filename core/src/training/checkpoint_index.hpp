// checkpoints/index.json: sizes and checksums that the files of a run were written with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

/// A file with its bytes and their SHA-256, 64 hexadecimal digits.
struct STIEFEL_API ListedFile {
  std::string file;
  Index step = 0;  // of a step_N.h5
  std::uint64_t bytes = 0;
  std::string sum;

  bool operator==(const ListedFile&) const = default;
  /// Whether the content of the file at `path` has this length and sum.
  bool is_content_of(const std::filesystem::path& path) const;
};

struct STIEFEL_API CheckpointIndex {
  std::vector<ListedFile> checkpoints;  // step_N.h5, by steps, each larger than the one before
  /// Networks, results.h5 and config.yaml, which are replaced while the run continues. A file may be listed twice, the older content
  /// first: a process may be killed between the entry and the renaming.
  std::vector<ListedFile> files;
  /// Where relative paths and data were looked for when the run began; its results say so only once they are there.
  std::string working_directory, data_directory;

  std::vector<ListedFile> entries_of(const std::string& file) const;
};

STIEFEL_API std::string step_file(Index step);  // step_N.h5
/// Where a file of the index is.
STIEFEL_API std::filesystem::path listed_path(const std::filesystem::path& run, const std::string& file);

/// A run has an index from its start: a missing one has been lost.
STIEFEL_API bool has_checkpoint_index(const std::filesystem::path& run);
/// Empty when there is no index. Error (Exit::damaged) when it cannot be read.
STIEFEL_API CheckpointIndex read_checkpoint_index(const std::filesystem::path& run);
/// The same from the text of the file at `path`.
CheckpointIndex parse_checkpoint_index(std::string_view text, const std::filesystem::path& path);

/// Replaces the index.
STIEFEL_API void write_checkpoint_index(const std::filesystem::path& run, const CheckpointIndex& index);
/// Lists the file at `content`, which is about to be renamed to `file`, next to what `file` is now.
STIEFEL_API void list_file(const std::filesystem::path& run, const std::string& file,
                           const std::filesystem::path& content);
/// Keeps only the entry of the present content of files that are listed twice.
STIEFEL_API void settle_files(const std::filesystem::path& run);

}  // namespace stiefel
