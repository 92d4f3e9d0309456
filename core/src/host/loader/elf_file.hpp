// The bytes of a shared library, and what they show without running any of it.
#pragma once

#include <filesystem>
#include <string>

namespace stiefel {

struct ElfFile {
  std::string bytes;
  std::string refusal;   // why dlopen must not see it; empty if the headers are valid
  std::string build_id;  // hexadecimal; empty if the linker wrote none
};

/// Reads a regular file and checks that it is a shared library for this machine whose tables and loaded segments lie
/// inside it. Otherwise dlopen would kill the process on a file that is cut off.
ElfFile read_elf(const std::filesystem::path& path);

}  // namespace stiefel
