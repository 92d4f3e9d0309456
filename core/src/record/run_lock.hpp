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

/// Whether the owner of a lock file, which cannot be asked, counts as dead; empty: never.
using LockPatience = std::function<bool(const std::filesystem::path&)>;

/// Patience of workers of sweeps, which touch their locks several times within it.
constexpr std::chrono::seconds usual_patience{60};

/// Judges by the time of the file and the clock of this host, at once. The clocks of two hosts may differ: good enough
/// to show.
STIEFEL_API LockPatience by_file_time(std::chrono::seconds patience);
/// Judges by what was seen of the file so far: unchanged for so long by a clock of this process, which looks again and
/// again. No two clocks are compared, and a time without looks, as when the file server hangs, counts as a sixth of the
/// patience at most. Copies share what was seen. For one thread.
STIEFEL_API LockPatience by_watching(std::chrono::seconds patience);

/// "process 123 on host since 2024-05-17T09:30:00Z" of the process that holds the lock; empty if no process holds it or
/// it is dead. A process of another host or container cannot be asked: its patience decides.
STIEFEL_API std::string living_owner(const std::filesystem::path& lock_file, const LockPatience& patience = {});

/// The same for what is shown of a run: the time of the lock and the usual patience decide.
STIEFEL_API std::string shown_owner(const std::filesystem::path& lock_file);

/// Shows that the owner of a lock is alive, by the clock of the file server.
STIEFEL_API void touch(const std::filesystem::path& lock_file);

/// Removes a lock whose owner is dead or lost our patience.
STIEFEL_API void remove_lost_lock(const std::filesystem::path& lock_file, const LockPatience& patience);

/// Only one process at a time holds it; the kernel ends this with the process.
class STIEFEL_API DirectoryGuard {
 public:
  explicit DirectoryGuard(const std::filesystem::path& directory);

 private:
  Descriptor file_;
};

/// The lock on an existing directory: a file `lock` that names host, process, boot and start of the process. A thread
/// touches it six times within the usual patience.
/// The lock of a dead process is taken over; of a living one, or one on another host that has not lost our patience,
/// Error (Exit::in_use) names the owner.
class STIEFEL_API RunLock {
 public:
  explicit RunLock(const std::filesystem::path& directory, const LockPatience& patience = {});
  ~RunLock();
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;

  /// False when it was taken over.
  bool held() const;

 private:
  std::filesystem::path path_;
  std::string content_;
  std::jthread heartbeat_;
};

}  // namespace stiefel
