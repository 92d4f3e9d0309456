// Replaces a file atomically: temporary file next to it, fsync, rename, fsync of the directory; every return is
// checked.
#include "base/atomic_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <random>
#include <string>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/file_content.hpp"
#include "base/file_error.hpp"

namespace stiefel {
namespace {

void write_all(int file, std::string_view bytes, const std::filesystem::path& path) {
  if (!write_whole(file, bytes)) throw file_error("writing", path, errno);
}

void sync_directory_of(const std::filesystem::path& file) {
  const std::filesystem::path parent = file.has_parent_path() ? file.parent_path() : ".";
  const Descriptor directory = open_file(parent, O_RDONLY | O_DIRECTORY);
  // Some network file systems refuse to sync a directory (EINVAL): there the rename is as safe as it can be.
  if (::fsync(*directory) != 0 && errno != EINVAL) throw file_error("writing directory", parent, errno);
}

}  // namespace

std::filesystem::path temporary_name(const std::filesystem::path& target) {
  return fmt::format("{}.{:08x}.tmp", target.string(), std::random_device()());
}

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)), temporary_(temporary_name(target_)) {
  if (std::error_code ignored; std::filesystem::is_directory(target_, ignored))
    throw Error(fmt::format("cannot write {}: it is a folder; name a file", target_.string()));
  file_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0 && errno == ENOENT && target_.has_parent_path())
    throw Error(fmt::format("cannot write {}: there is no folder {}; create it, or choose another", target_.string(),
                            target_.parent_path().string()),
                Exit::usage);
  if (file_ < 0) throw file_error("writing", target_, errno);
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) ::close(file_);
  if (!replaced_) ::unlink(temporary_.c_str());
}

void AtomicFile::reserve(std::uintmax_t bytes) {
  int result;
  do result = ::fallocate(file_, FALLOC_FL_KEEP_SIZE, 0, off_t(bytes));
  while (result != 0 && errno == EINTR);
  if (result == 0 || errno == EOPNOTSUPP || errno == ENOSYS) return;
  if (is_out_of_space(errno)) throw out_of_space(target_, bytes, std::generic_category().message(errno));
  throw file_error("reserving space for", temporary_, errno);
}

void AtomicFile::copy_target() {
  const Descriptor source = open_file(target_, O_RDONLY);
  struct stat information;
  if (::fstat(*source, &information) != 0) throw file_error("examining", target_, errno);
  std::array<char, std::size_t(1) << 18>
      buffer;  // on the stack: blocks of that size, taken again and again, tear the heap apart
  off_t copied = 0;
  while (true) {
    const ssize_t got = ::read(*source, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_error("reading", target_, errno);
    if (got == 0) break;
    write_all(file_, {buffer.data(), std::size_t(got)}, temporary_);
    copied += got;
  }
  if (copied != information.st_size)
    throw Error(target_.string() + " changed while it was copied; only the running experiment may write it",
                Exit::damaged);
}

void AtomicFile::write(std::string_view bytes) { write_all(file_, bytes, temporary_); }

void AtomicFile::replace() {
  struct stat information;
  if (::fstat(file_, &information) != 0) throw file_error("examining", temporary_, errno);
  if (::ftruncate(file_, information.st_size) != 0) throw file_error("trimming", temporary_, errno);
  if (::fsync(file_) != 0) throw file_error("writing", temporary_, errno);
  const int closed = ::close(file_);
  file_ = -1;
  if (closed != 0) throw file_error("closing", temporary_, errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    throw file_error("renaming to " + target_.string() + " of", temporary_, errno);
  replaced_ = true;
}

void AtomicFile::sync_directory() { sync_directory_of(target_); }

void rename_written(const std::filesystem::path& written, const std::filesystem::path& target) {
  const Descriptor file = open_file(written, O_RDONLY);
  if (::fsync(*file) != 0) throw file_error("writing", written, errno);
  if (::rename(written.c_str(), target.c_str()) != 0)
    throw file_error("renaming to " + target.string() + " of", written, errno);
  sync_directory_of(target);
}

bool is_device(const std::filesystem::path& target) {
  std::error_code none;
  const std::filesystem::file_status status = std::filesystem::status(target, none);
  return exists(status) && !is_regular_file(status) && !is_directory(status);
}

std::filesystem::path behind_link(const std::filesystem::path& target) {
  std::error_code none;
  return exists(target, none) && is_symlink(target, none) ? std::filesystem::canonical(target) : target;
}

void replace_file(const std::filesystem::path& target, std::string_view bytes) {
  if (is_device(target)) {
    const Descriptor device = open_file(target, O_WRONLY);
    return write_all(*device, bytes, target);
  }
  AtomicFile file(behind_link(target));
  file.write(bytes);
  file.replace();
  file.sync_directory();
}

bool replace_when_new(const std::filesystem::path& target, std::string_view bytes) {
  if (content_if_there(target) == bytes) return false;
  replace_file(target, bytes);
  return true;
}

}  // namespace stiefel
