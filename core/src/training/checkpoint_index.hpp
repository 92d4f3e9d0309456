// checkpoints/index.json: the sizes and checksums of a run's files as they were written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <stiefel/export.hpp>
#include <stiefel/matrix.hpp>

namespace stiefel {

/// A file with its size in bytes and its SHA-256, 64 hexadecimal digits.
struct STIEFEL_API ListedFile {
  std::string file;
  Index step = 0;  // N of step_N.h5
  std::uint64_t bytes = 0;
  std::string sum;

  bool operator==(const ListedFile&) const = default;
  /// Whether the file at `path` has this size and checksum.
  bool is_content_of(const std::filesystem::path& path) const;
};

struct STIEFEL_API CheckpointIndex {
  std::vector<ListedFile> checkpoints;  // step_N.h5, in increasing order of steps
  /// Networks, results.h5 and config.yaml, which the run replaces. A file may be listed twice, the older content first,
  /// because a process may be killed between listing and renaming it.
  std::vector<ListedFile> files;
  /// Folders of relative paths and of data when the run began. results.h5 has them too, but is written later.
  std::string working_directory, data_directory;

  std::vector<ListedFile> entries_of(const std::string& file) const;
};

STIEFEL_API std::string step_file(Index step);  // step_N.h5
/// The path of a file in the index.
STIEFEL_API std::filesystem::path listed_path(const std::filesystem::path& run, const std::string& file);

/// Whether the run has an index. It has one from its start, so a missing one was lost.
STIEFEL_API bool has_checkpoint_index(const std::filesystem::path& run);
/// Returns an empty index if there is none. Throws Error (Exit::damaged) if it is not what was written.
STIEFEL_API CheckpointIndex read_checkpoint_index(const std::filesystem::path& run);
/// Does the same with the text of the file at `path`.
CheckpointIndex parse_checkpoint_index(std::string_view text, const std::filesystem::path& path);

/// Replaces the index.
STIEFEL_API void write_checkpoint_index(const std::filesystem::path& run, const CheckpointIndex& index);
/// Lists the file at `content`, which is about to be renamed to `file`, in addition to the present `file`.
STIEFEL_API void list_file(const std::filesystem::path& run, const std::string& file,
                           const std::filesystem::path& content);
/// For each file that is listed twice, keeps only the entry of its present content.
STIEFEL_API void settle_files(const std::filesystem::path& run);

}  // namespace stiefel
