/// Who holds a lock file.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include <stiefel/export.hpp>

namespace stiefel {

/// How long an owner that cannot be asked may leave its lock untouched before it counts as dead; nothing: for ever.
using LockPatience = std::optional<std::chrono::seconds>;

/// "process 123 on host since 2024-05-17T09:30:00Z" of the process that holds the lock; empty when nobody does or it is dead.
/// A process of another host or container cannot be asked: its patience decides.
STIEFEL_API std::string living_owner(const std::filesystem::path& lock_file, LockPatience patience = {});

/// Removes the lock on a directory if its owner is on that host, which is not this one.
STIEFEL_API void remove_lock_of(const std::string& host, const std::filesystem::path& directory);

/// Only one process at a time holds it; the kernel ends this with the process.
class STIEFEL_API DirectoryGuard {
 public:
  explicit DirectoryGuard(const std::filesystem::path& directory);
  ~DirectoryGuard();
  DirectoryGuard(const DirectoryGuard&) = delete;
  DirectoryGuard& operator=(const DirectoryGuard&) = delete;

 private:
  int file_;
};

}  // namespace stiefel
