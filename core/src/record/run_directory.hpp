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

/// Returns root/name/id. Throws Error if `name` or `id` is not valid as the name of a folder.
STIEFEL_API std::filesystem::path run_path(const std::filesystem::path& root, std::string_view name,
                                           std::string_view id);
STIEFEL_API RunState run_state(const std::filesystem::path& directory);
/// Whether results.h5 records a finished run. Does not look at the lock.
STIEFEL_API bool is_finished(const std::filesystem::path& directory);

/// Whether an unfinished run has saved a network or results of any step, so that resuming it would not begin at step 0.
/// True if its results cannot be read.
STIEFEL_API bool has_saved(const std::filesystem::path& directory);
/// Removes the files of a run that has saved nothing, except its log. Does nothing if it has saved something meanwhile.
STIEFEL_API void start_again(const std::filesystem::path& directory);

/// The folder of a run, which this process has locked. Temporary files that a killed process left there are removed.
class STIEFEL_API RunDirectory {
 public:
  /// Makes the directory, locks it, calls before(directory) and writes config.yaml, after which the run can be resumed.
  /// Throws Error if the directory already holds a run.
  static RunDirectory create(
      const std::filesystem::path& root, std::string_view name, std::string_view id, std::string_view config_yaml,
      const std::function<void(const std::filesystem::path&)>& before = [](const std::filesystem::path&) {});
  /// Locks the directory of a run that was begun before.
  static RunDirectory open(const std::filesystem::path& directory);

  const std::filesystem::path& path() const { return path_; }
  /// Throws Error (Exit::in_use) if the lock was removed, or if another process considered this one dead and took it
  /// over.
  void require_lock() const;

 private:
  RunDirectory(std::filesystem::path path, RunLock lock);
  std::filesystem::path path_;
  RunLock lock_;
};

}  // namespace stiefel
