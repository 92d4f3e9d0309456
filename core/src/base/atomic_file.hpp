/// Replaces a file atomically: the new content is written to a temporary file and renamed over PATH only once all of it
/// is on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include <stiefel/export.hpp>

namespace stiefel {

/// A name next to a file that no other process uses, which ends with ".tmp". Numbers of processes are no help: those of
/// two hosts or containers may be the same.
STIEFEL_API std::filesystem::path temporary_name(const std::filesystem::path& target);

/// One replacement, in the order of the calls: reserve, (copy_target), write to it or to temporary() by any means,
/// replace, sync_directory. Until replace() the target is untouched; an object destroyed before that removes the
/// temporary file.
class STIEFEL_API AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& temporary() const { return temporary_; }

  /// Takes `bytes` on the disk for the temporary file without changing its length; Error (Exit::exhausted) when they
  /// are not there. File systems that cannot reserve are left to fail at the write.
  void reserve(std::uintmax_t bytes);
  /// Copies the target into the temporary file.
  void copy_target();
  /// Adds to the temporary file.
  void write(std::string_view bytes);
  /// Gives back what was reserved too much, syncs the temporary file and renames it over the target.
  void replace();
  /// Makes the rename itself survive a power cut.
  void sync_directory();

 private:
  std::filesystem::path target_, temporary_;
  int file_ = -1;
  bool replaced_ = false;
};

/// Renames a file that was written by other means, once all of it is on the disk, and makes that survive a power cut.
STIEFEL_API void rename_written(const std::filesystem::path& written, const std::filesystem::path& target);

/// Whether there is something that is written to, not replaced: a device or a pipe.
STIEFEL_API bool is_device(const std::filesystem::path& target);
/// The file that is replaced under a name: behind a link, what that leads to.
STIEFEL_API std::filesystem::path behind_link(const std::filesystem::path& target);
/// Puts `bytes` in the place of the file, all of it or, with an Error, nothing. A link keeps its name and its file gets
/// the content; a device or a pipe is written to.
STIEFEL_API void replace_file(const std::filesystem::path& target, std::string_view bytes);
/// The same unless the file already has this content: then returns false, and the file keeps its time.
STIEFEL_API bool replace_when_new(const std::filesystem::path& target, std::string_view bytes);

}  // namespace stiefel
