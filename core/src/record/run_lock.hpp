/// Locks on folders, and who holds them.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include <stiefel/export.hpp>

#include "base/descriptor.hpp"

namespace stiefel {

/// Whether the owner of a lock file on another host or in another container, which cannot be examined, counts as dead.
/// An empty function means never.
using LockPatience = std::function<bool(const std::filesystem::path&)>;

/// The default patience. The owner of a lock touches it several times within it.
constexpr std::chrono::seconds usual_patience{60};

/// Decides at once, by the time of the file and the clock of this host. It is only approximate, because the clocks of
/// two hosts may differ.
STIEFEL_API LockPatience by_file_time(std::chrono::seconds patience);
/// Decides by watching the file in repeated calls: the owner counts as dead if the file stays unchanged for `patience`
/// by the clock of this process. No two clocks are compared. An interval between two calls counts as at most a sixth of
/// the patience, because the file server may have hung. Copies share what they have seen. Not thread-safe.
STIEFEL_API LockPatience by_watching(std::chrono::seconds patience);

/// "process 123 on host since 2024-05-17T09:30:00Z" for the process that holds the lock; empty if no process holds it
/// or it is dead. `patience` decides about a process of another host or container, which cannot be examined.
STIEFEL_API std::string living_owner(const std::filesystem::path& lock_file, const LockPatience& patience = {});

/// living_owner() for display: the time of the lock file and the usual patience decide.
STIEFEL_API std::string shown_owner(const std::filesystem::path& lock_file);

/// Sets the time of a lock file to the file server's clock, which shows that its owner is alive.
STIEFEL_API void touch(const std::filesystem::path& lock_file);

/// Removes a lock whose owner is dead, or counts as dead by `patience`.
STIEFEL_API void remove_lost_lock(const std::filesystem::path& lock_file, const LockPatience& patience);

/// Waits for a directory's flock(), which only one process at a time holds, until the object or the process ends.
class STIEFEL_API DirectoryGuard {
 public:
  explicit DirectoryGuard(const std::filesystem::path& directory);

 private:
  Descriptor file_;
};

/// The lock on an existing directory: a file `lock` that names host, process, boot and start of the process. A thread
/// touches it six times within the usual patience. The lock of a dead process is taken over. Otherwise, unless
/// `patience` counts the owner as dead, throws Error (Exit::in_use) that names it.
class STIEFEL_API RunLock {
 public:
  explicit RunLock(const std::filesystem::path& directory, const LockPatience& patience = {});
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;

  /// Whether this process still has the lock; false if it was removed or taken over.
  bool held() const;

 private:
  std::filesystem::path path_;
  std::string content_;
  std::jthread heartbeat_;
};

}  // namespace stiefel
