/// runs/<name>/<id>: the directory of one run, locked while a process works in it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include <stiefel/export.hpp>

#include "record/run_lock.hpp"

namespace stiefel {

enum class RunState {
  none,        ///< nothing there
  unfinished,  ///< started, and no process works on it
  finished,
  running,  ///< a living process holds the lock
};

/// root/name/id; Error when name or id cannot be a folder's name.
STIEFEL_API std::filesystem::path run_path(const std::filesystem::path& root, std::string_view name,
                                           std::string_view id);
STIEFEL_API RunState run_state(const std::filesystem::path& directory);
/// Reads results.h5, no matter who holds the lock.
STIEFEL_API bool is_finished(const std::filesystem::path& directory);

/// Whether an unfinished run has a network, or results of any step: resuming it would not begin at step 0. True if its
/// results cannot be read.
STIEFEL_API bool has_saved(const std::filesystem::path& directory);
/// Removes what a run that has saved nothing left, except its log.
STIEFEL_API void start_again(const std::filesystem::path& directory);

/// A run of this process. What a killed one left half-written there is removed.
class STIEFEL_API RunDirectory {
 public:
  /// Makes the directory, locks it, calls before(directory) and writes config.yaml, from which on the run can be resumed;
  /// Error when a run was begun there before.
  static RunDirectory create(
      const std::filesystem::path& root, std::string_view name, std::string_view id, std::string_view config_yaml,
      const std::function<void(const std::filesystem::path&)>& before = [](const std::filesystem::path&) {});
  /// Locks the directory of a run that was begun before.
  static RunDirectory open(const std::filesystem::path& directory);

  const std::filesystem::path& path() const { return path_; }
  /// Error (Exit::in_use) when this process was taken for dead and another one works here now, or the lock was removed.
  void require_lock() const;

 private:
  RunDirectory(std::filesystem::path path, RunLock lock);
  std::filesystem::path path_;
  RunLock lock_;
};

}  // namespace stiefel
