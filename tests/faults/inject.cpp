// Preloaded into a program: system calls on the files below a folder are counted, stopped, made to fail, or written
// down.
//
//   STIEFEL_FAULT_FOLDER   the folder; nothing happens without it
//   STIEFEL_FAULT_MODE     count   the number of calls goes to STIEFEL_FAULT_LOG when the program ends
//                          kill    SIGKILL just before call number STIEFEL_FAULT_AT, the first being 1
//                          fail    from that call on every one that could takes STIEFEL_FAULT_ERRNO (ENOSPC, EIO,
//                                  EDQUOT, EROFS)
//                          record  every call that changes a file or folder is appended to STIEFEL_FAULT_LOG
//                          memory  allocation number STIEFEL_FAULT_AT fails (inject_memory.cpp). With 0 none does, and
//                                  STIEFEL_FAULT_LOG gets lines `number what path`, what being read, create, rename or
//                                  end: how many there had been by then
//
// Calls: open for writing, write, writev, pwrite, ftruncate, fallocate, fsync, fdatasync, rename, unlink, mkdir, close.
// A record is a line `name path [number…]`, with paths relative to the folder and in hexadecimal; of writes the bytes
// follow, as many as the second number says.
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "inject.hpp"

namespace inject {

State& state() {
  static State* made = [] {
    auto* s = new State;
    const auto text = [](const char* name) { return std::string(getenv(name) ? getenv(name) : ""); };
    char resolved[4096];
    s->folder = text("STIEFEL_FAULT_FOLDER");
    if (!s->folder.empty() && realpath(s->folder.c_str(), resolved)) s->folder = resolved;
    s->log = text("STIEFEL_FAULT_LOG");
    s->at = atol(text("STIEFEL_FAULT_AT").c_str());
    const std::string mode = text("STIEFEL_FAULT_MODE"), error = text("STIEFEL_FAULT_ERRNO");
    s->error = error == "EIO" ? EIO : error == "EDQUOT" ? EDQUOT : error == "EROFS" ? EROFS : ENOSPC;
    if (!s->folder.empty())
      s->mode = mode == "count"    ? Mode::count
                : mode == "kill"   ? Mode::kill
                : mode == "fail"   ? Mode::fail
                : mode == "record" ? Mode::record
                : mode == "memory" ? Mode::memory
                                   : Mode::none;
    if (s->mode == Mode::record || (s->mode == Mode::memory && s->at == 0))
      s->log_file =
          real<int (*)(const char*, int, ...)>("open")(s->log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return s;
  }();
  return *made;
}

}  // namespace inject

using namespace inject;

namespace {

/// Path below the folder; empty when it is elsewhere.
std::string inside(const char* path) {
  const OwnMemory own;
  std::string full = path;
  if (path[0] != '/') {
    char here[4096];
    if (!getcwd(here, sizeof here)) return "";
    full = std::string(here) + "/" + path;
  }
  const std::string& folder = state().folder;
  return full.size() > folder.size() + 1 && full.compare(0, folder.size(), folder) == 0 && full[folder.size()] == '/'
             ? full.substr(folder.size() + 1)
             : "";
}

std::string name_of(int file) {
  State& s = state();
  if (s.mode == Mode::memory) return "";
  const std::lock_guard lock(s.mutex);
  const auto found = s.open_files.find(file);
  return found == s.open_files.end() ? "" : found->second;
}

/// Counts the call; kills, or returns true when it is to fail.
bool stopped() {
  State& s = state();
  if (s.mode == Mode::memory) return false;
  const long number = ++s.calls;
  if (s.mode == Mode::kill && number == s.at) kill(getpid(), SIGKILL);
  if (s.mode != Mode::fail || number < s.at) return false;
  errno = s.error;
  return true;
}

std::string hexadecimal(const std::string& text) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (unsigned char c : text) out += digits[c >> 4], out += digits[c & 15];
  return out;
}

/// To the log, if there is one.
void record(const std::string& line, const void* bytes = nullptr, std::size_t count = 0) {
  State& s = state();
  if (s.log_file < 0) return;
  const std::lock_guard lock(s.mutex);
  std::string all = (s.mode == Mode::memory ? std::to_string(s.calls) + " " : "") + line + "\n";
  all.append(static_cast<const char*>(bytes), bytes ? count : 0);
  const auto write = real<ssize_t (*)(int, const void*, size_t)>("write");
  for (std::size_t done = 0; done < all.size();) {
    const ssize_t now = write(s.log_file, all.data() + done, all.size() - done);
    if (now <= 0) abort();
    done += std::size_t(now);
  }
}

/// What is known when the program ends; processes that it has forked know only a part.
struct AtExit {
  const pid_t program = getpid();

  ~AtExit() { tell(); }
  void tell() const {
    State& s = state();
    if (getpid() != program) return;
    if (s.mode == Mode::memory) record("end");
    if (s.mode != Mode::count) return;
    const int file = real<int (*)(const char*, int, ...)>("open")(s.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const std::string text = std::to_string(s.calls.load()) + "\n";
    if (real<ssize_t (*)(int, const void*, size_t)>("write")(file, text.data(), text.size()) < 0) abort();
  }
} at_exit;

int opened(const char* call, int folder, const char* path, int flags, mode_t mode) {
  const bool at = std::strncmp(call, "openat", 6) == 0;
  const std::string name = at && folder != AT_FDCWD && path[0] != '/' ? "" : inside(path);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if (!name.empty() && writes && stopped()) return -1;
  const int file = at ? real<int (*)(int, const char*, int, ...)>(call)(folder, path, flags, mode)
                      : real<int (*)(const char*, int, ...)>(call)(path, flags, mode);
  if (name.empty() || file < 0) return file;
  const OwnMemory own;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.open_files[file] = name;
  if (s.mode == Mode::memory && !writes) record("read " + hexadecimal(name));
  if (writes && (flags & O_CREAT)) record("create " + hexadecimal(name) + ((flags & O_TRUNC) ? " 1" : " 0"));
  return file;
}

off_t position(int file) {
  return (fcntl(file, F_GETFL) & O_APPEND) ? lseek(file, 0, SEEK_END) : lseek(file, 0, SEEK_CUR);
}

}  // namespace

#define STIEFEL_MODE(flags)              \
  mode_t mode = 0;                       \
  if ((flags) & (O_CREAT | O_TMPFILE)) { \
    va_list rest;                        \
    va_start(rest, flags);               \
    mode = va_arg(rest, mode_t);         \
    va_end(rest);                        \
  }

extern "C" {

void _exit(int code) {  // without destructors
  at_exit.tell();
  real<void (*)(int)>("_exit")(code);
  __builtin_unreachable();
}

int open(const char* path, int flags, ...) {
  STIEFEL_MODE(flags)
  return opened("open", AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  STIEFEL_MODE(flags)
  return opened("open64", AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  STIEFEL_MODE(flags)
  return opened("openat", folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  STIEFEL_MODE(flags)
  return opened("openat64", folder, path, flags, mode);
}

static FILE* stream_opened(const char* call, const char* path, const char* mode) {
  const std::string name = inside(path);
  const bool writes = mode[0] != 'r' || strchr(mode, '+');
  if (!name.empty() && writes && stopped()) return nullptr;
  FILE* stream = real<FILE* (*)(const char*, const char*)>(call)(path, mode);
  if (name.empty() || !stream) return stream;
  const OwnMemory own;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.open_files[fileno(stream)] = name;
  if (s.mode == Mode::memory && !writes) record("read " + hexadecimal(name));
  if (mode[0] != 'r') record("create " + hexadecimal(name) + (mode[0] == 'w' ? " 1" : " 0"));
  return stream;
}
FILE* fopen(const char* path, const char* mode) { return stream_opened("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return stream_opened("fopen64", path, mode); }
int fclose(FILE* stream) {
  {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    s.open_files.erase(fileno(stream));
  }
  return real<int (*)(FILE*)>("fclose")(stream);
}

int close(int file) {
  const std::string name = name_of(file);
  const bool fails = !name.empty() && stopped();
  {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    s.open_files.erase(file);
  }
  const int result = real<int (*)(int)>("close")(file);
  if (!fails) return result;
  errno = state().error;
  return -1;
}

ssize_t write(int file, const void* data, size_t count) {
  const std::string name = name_of(file);
  if (!name.empty() && stopped()) return -1;
  const off_t where = name.empty() ? 0 : position(file);
  const ssize_t done = real<ssize_t (*)(int, const void*, size_t)>("write")(file, data, count);
  if (!name.empty() && done > 0)
    record("write " + hexadecimal(name) + " " + std::to_string(where) + " " + std::to_string(done), data,
           std::size_t(done));
  return done;
}

ssize_t writev(int file, const iovec* parts, int count) {
  const std::string name = name_of(file);
  if (!name.empty() && stopped()) return -1;
  const off_t where = name.empty() ? 0 : position(file);
  const ssize_t done = real<ssize_t (*)(int, const iovec*, int)>("writev")(file, parts, count);
  if (!name.empty() && done > 0) {
    std::string all;
    for (int i = 0; i < count; ++i) all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
    record("write " + hexadecimal(name) + " " + std::to_string(where) + " " + std::to_string(done), all.data(),
           std::size_t(done));
  }
  return done;
}

static ssize_t placed(const char* call, int file, const void* data, size_t count, off_t where) {
  const std::string name = name_of(file);
  if (!name.empty() && stopped()) return -1;
  const ssize_t done = real<ssize_t (*)(int, const void*, size_t, off_t)>(call)(file, data, count, where);
  if (!name.empty() && done > 0)
    record("write " + hexadecimal(name) + " " + std::to_string(where) + " " + std::to_string(done), data,
           std::size_t(done));
  return done;
}
ssize_t pwrite(int file, const void* data, size_t count, off_t where) {
  return placed("pwrite", file, data, count, where);
}
ssize_t pwrite64(int file, const void* data, size_t count, off64_t where) {
  return placed("pwrite64", file, data, count, where);
}

static int cut(const char* call, int file, off_t length) {
  const std::string name = name_of(file);
  if (!name.empty() && stopped()) return -1;
  const int result = real<int (*)(int, off_t)>(call)(file, length);
  if (!name.empty() && result == 0) record("truncate " + hexadecimal(name) + " " + std::to_string(length));
  return result;
}
int ftruncate(int file, off_t length) noexcept { return cut("ftruncate", file, length); }
int ftruncate64(int file, off64_t length) noexcept { return cut("ftruncate64", file, length); }

int fallocate(int file, int mode, off_t where, off_t length) {
  if (!name_of(file).empty() && stopped()) return -1;
  return real<int (*)(int, int, off_t, off_t)>("fallocate")(file, mode, where, length);
}

static int synced(const char* call, int file) {
  const std::string name = name_of(file);
  if (!name.empty() && stopped()) return -1;
  const int result = real<int (*)(int)>(call)(file);
  if (!name.empty() && result == 0) record("sync " + hexadecimal(name));
  return result;
}
int fsync(int file) { return synced("fsync", file); }
int fdatasync(int file) { return synced("fdatasync", file); }

int rename(const char* from, const char* to) noexcept {
  const std::string name = inside(from);
  if (!name.empty() && stopped()) return -1;
  const int result = real<int (*)(const char*, const char*)>("rename")(from, to);
  if (!name.empty() && result == 0) {
    const OwnMemory own;
    record("rename " + hexadecimal(name) + " " + hexadecimal(inside(to)));
    State& s = state();
    const std::lock_guard lock(s.mutex);
    for (auto& [file, open_name] : s.open_files)
      if (open_name == name) open_name = inside(to);
  }
  return result;
}

int unlink(const char* path) noexcept {
  const std::string name = inside(path);
  if (!name.empty() && stopped()) return -1;
  const int result = real<int (*)(const char*)>("unlink")(path);
  if (!name.empty() && result == 0) record("unlink " + hexadecimal(name));
  return result;
}
int remove(const char* path) noexcept {
  struct stat information;
  if (!inside(path).empty() && lstat(path, &information) == 0 && !S_ISDIR(information.st_mode)) return unlink(path);
  return real<int (*)(const char*)>("remove")(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  const std::string name = inside(path);
  if (!name.empty() && stopped()) return -1;
  const int result = real<int (*)(const char*, mode_t)>("mkdir")(path, mode);
  if (!name.empty() && result == 0) record("mkdir " + hexadecimal(name));
  return result;
}

}  // extern "C"
