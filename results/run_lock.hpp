/// Who holds a lock file.
#pragma once

#include <filesystem>
#include <string>

namespace stiefel {

/// "process 123 on host since 2024-05-17T09:30:00Z" of the process that holds the lock; empty when nobody does or it is dead.
/// A process of another host or container cannot be asked and counts as living.
std::string living_owner(const std::filesystem::path& lock_file);

}  // namespace stiefel
