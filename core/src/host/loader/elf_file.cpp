// Checks ELF64 headers: the file header names the tables, and each table and each loaded segment must end inside the
// file.
#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/descriptor.hpp"
#include "host/loader/elf_file.hpp"

namespace stiefel {
namespace {

#if defined(__x86_64__)
constexpr unsigned this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr unsigned this_machine = EM_AARCH64;
#else
#error "stiefel runs on x86-64 and AArch64"
#endif

std::string machine_name(unsigned machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "AArch64";
    case EM_386:
      return "i386";
    case EM_ARM:
      return "ARM";
    case EM_PPC64:
      return "PowerPC64";
    case EM_RISCV:
      return "RISC-V";
    default:
      return fmt::format("number {}", machine);
  }
}

/// Fills `bytes`, or returns why the file is refused. It is opened with O_NONBLOCK and examined afterwards, because
/// opening a FIFO would block.
std::string read_regular(const std::filesystem::path& path, std::string& bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (*file < 0)
    return fmt::format("it cannot be opened ({}); check the path and its permissions with ls -l '{}'",
                       std::strerror(errno), path.string());
  struct stat status {};
  if (fstat(*file, &status) != 0) return fmt::format("it cannot be examined ({})", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) {
    const char* kind = S_ISDIR(status.st_mode) ? "a folder" : S_ISFIFO(status.st_mode) ? "a FIFO" : "a special file";
    return fmt::format(
        "it is {} where a plugin is a regular file; remove it, or name the .so that stiefel_add_plugin() builds", kind);
  }
  bytes.resize(std::size_t(status.st_size));
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t count = read(*file, bytes.data() + have, bytes.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return fmt::format("it cannot be read ({}); check the disk and copy or build the file again",
                         std::strerror(errno));
    if (count == 0) break;
    have += std::size_t(count);
  }
  bytes.resize(have);
  return {};
}

template <class T> std::optional<T> at(const std::string& bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::string printable(const std::string& bytes) {
  std::string text;
  for (const unsigned char c : bytes.substr(0, 4))
    text += c >= ' ' && c < 127 ? std::string(1, char(c)) : fmt::format("\\x{:02x}", c);
  return text;
}

bool inside(const std::string& bytes, std::uint64_t offset, std::uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset;
}

std::string cut(const std::string& bytes, const std::string& part, std::uint64_t offset, std::uint64_t size) {
  return fmt::format(
      "it is cut off or damaged: its {} needs {} bytes starting at byte {}, but the file has {}; copy or build the "
      "file again",
      part, size, offset, bytes.size());
}

std::string check_identity(const std::string& bytes) {
  if (bytes.size() < EI_NIDENT || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
    return fmt::format(
        "it starts with \"{}\" where a shared library starts with \"\\x7fELF\"; name the .so that stiefel_add_plugin() "
        "builds",
        printable(bytes));
  if (bytes[EI_CLASS] != ELFCLASS64)
    return fmt::format("it is a {} library and this program is 64-bit; rebuild the plugin on this machine",
                       bytes[EI_CLASS] == ELFCLASS32 ? "32-bit" : "damaged");
  if (bytes[EI_DATA] != ELFDATA2LSB)
    return "it is a big-endian library and this machine is little-endian; rebuild the plugin on this machine";
  return {};
}

std::string check_tables(const std::string& bytes, const Elf64_Ehdr& header) {
  if (header.e_machine != this_machine)
    return fmt::format("it is built for the machine {} and this is {}; rebuild the plugin on this machine",
                       machine_name(header.e_machine), machine_name(this_machine));
  if (header.e_type != ET_DYN)
    return fmt::format("its ELF type is {}, but a shared library has {}; name the .so that stiefel_add_plugin() builds",
                       header.e_type, ET_DYN);
  if (header.e_phnum == 0 || header.e_phentsize != sizeof(Elf64_Phdr))
    return fmt::format(
        "it is damaged: it has {} program headers of {} bytes where a library has some of {}; copy or build the file "
        "again",
        header.e_phnum, header.e_phentsize, sizeof(Elf64_Phdr));
  const std::uint64_t programs = std::uint64_t(header.e_phnum) * header.e_phentsize,
                      sections = std::uint64_t(header.e_shnum) * header.e_shentsize;
  if (!inside(bytes, header.e_shoff, sections)) return cut(bytes, "section table", header.e_shoff, sections);
  if (!inside(bytes, header.e_phoff, programs)) return cut(bytes, "program table", header.e_phoff, programs);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = *at<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr));
    if ((segment.p_type == PT_LOAD || segment.p_type == PT_DYNAMIC) &&
        !inside(bytes, segment.p_offset, segment.p_filesz))
      return cut(bytes, fmt::format("segment {}", i), segment.p_offset, segment.p_filesz);
  }
  return {};
}

/// The build id in the GNU note, hexadecimal; empty if there is none. A note is a header, a name and a description, the
/// last two padded to 4 bytes.
std::string find_build_id(const std::string& bytes, const Elf64_Ehdr& header) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = *at<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type != PT_NOTE || !inside(bytes, segment.p_offset, segment.p_filesz)) continue;
    std::uint64_t place = segment.p_offset;
    while (const auto note = at<Elf64_Nhdr>(bytes, place)) {
      const auto padded = [](std::uint64_t n) { return (n + 3) / 4 * 4; };
      const std::uint64_t name = place + sizeof(Elf64_Nhdr), text = name + padded(note->n_namesz),
                          next = text + padded(note->n_descsz);
      if (next > segment.p_offset + segment.p_filesz || next > bytes.size()) break;
      if (note->n_type == NT_GNU_BUILD_ID && bytes.compare(name, 4, std::string("GNU", 4)) == 0) {
        const auto* id = reinterpret_cast<const unsigned char*>(bytes.data()) + text;
        return fmt::format("{:02x}", fmt::join(id, id + note->n_descsz, ""));
      }
      place = next;
    }
  }
  return {};
}

}  // namespace

ElfFile read_elf(const std::filesystem::path& path) {
  ElfFile file;
  file.refusal = read_regular(path, file.bytes);
  if (file.refusal.empty()) file.refusal = check_identity(file.bytes);
  if (!file.refusal.empty()) return file;
  const auto header = at<Elf64_Ehdr>(file.bytes, 0);
  file.refusal = header ? check_tables(file.bytes, *header) : cut(file.bytes, "header", 0, sizeof(Elf64_Ehdr));
  if (file.refusal.empty()) file.build_id = find_build_id(file.bytes, *header);
  return file;
}

}  // namespace stiefel
