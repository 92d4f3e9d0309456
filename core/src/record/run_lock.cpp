// The lock of a run directory is a JSON file {host, machine, pid, boot, namespace, start, since}. It is made by
// link(2), which fails if there already is one.
#include "record/run_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/file_content.hpp"
#include "base/file_error.hpp"
#include "base/json_text.hpp"
#include "record/header_file.hpp"
#include "record/provenance.hpp"
#include "record/run_folder.hpp"

namespace stiefel {
namespace {

struct Owner {
  std::string host;
  std::string machine;  // /etc/machine-id, because two hosts may have the same name
  long pid = 0;
  std::string boot;           // boot id of the kernel, which differs after a restart
  std::string pid_namespace;  // pids of another container mean nothing here
  std::string start;          // of the process in clock ticks since boot, because pids are reused
  std::string since;
};

std::string first_word(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

/// Field 22 of /proc/<pid>/stat. Empty if there is no such process, it has just ended, or it is a zombie.
std::string process_start(long pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text, '\0');
  const std::size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == text.npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  std::string field, state;
  fields >> state;
  for (int number = 4; number <= 22; ++number) fields >> field;
  return state == "Z" || state == "X" ? std::string() : field;
}

Owner this_process() {
  std::error_code ignored;
  const long pid = ::getpid();
  return {host_name(),
          first_word("/etc/machine-id"),
          pid,
          first_word("/proc/sys/kernel/random/boot_id"),
          std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string(),
          process_start(pid),
          iso_8601(seconds_since_1970())};
}

std::string written(const Owner& owner) {
  return json_text(nlohmann::ordered_json{{"host", owner.host},
                                          {"machine", owner.machine},
                                          {"pid", owner.pid},
                                          {"boot", owner.boot},
                                          {"namespace", owner.pid_namespace},
                                          {"start", owner.start},
                                          {"since", owner.since}}) +
         "\n";
}

/// Nothing if the text is not a lock file of stiefel.
std::optional<Owner> parsed(const std::string& text) {
  try {
    const nlohmann::json json = parse_json(text);
    return Owner{json.at("host"),      json.value("machine", ""), json.at("pid"),  json.at("boot"),
                 json.at("namespace"), json.at("start"),          json.at("since")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

/// Whether the process belongs to another user and /proc hides it (hidepid).
bool is_hidden(long pid) {
  std::error_code ignored;
  return !std::filesystem::exists(fmt::format("/proc/{}", pid), ignored) && ::kill(pid_t(pid), 0) != 0 &&
         errno == EPERM;
}

enum class Life { dead, living, elsewhere };

Life life_of(const Owner& owner) {
  const Owner self = this_process();
  const bool same_machine = owner.host == self.host && (owner.machine.empty() || owner.machine == self.machine);
  // The same boot id means the same kernel, even if the host was renamed. A sandbox may hide the boot id.
  const bool same_kernel = owner.boot == self.boot && (!self.boot.empty() || same_machine);
  if (!same_kernel) return same_machine ? Life::dead : Life::elsewhere;
  if (owner.pid_namespace != self.pid_namespace) return Life::elsewhere;
  const std::string start = process_start(owner.pid);
  if (start.empty() && is_hidden(owner.pid)) return Life::living;
  return !owner.start.empty() && start == owner.start ? Life::living : Life::dead;
}

/// Makes the lock appear atomically: written next to it, then linked. Returns false if there already is one.
bool make_lock(const std::filesystem::path& path, const std::string& content) {
  const std::filesystem::path draft = temporary_name(path);
  std::ofstream stream(draft, std::ios::binary | std::ios::trunc);
  stream << content;
  stream.close();
  if (!stream) {
    const int error = errno;
    ::unlink(draft.c_str());
    throw file_error("writing", draft, error);
  }
  const int result = ::link(draft.c_str(), path.c_str()), error = errno;
  // NFS repeats a link() whose reply was lost, and the repetition fails because the link exists.
  struct stat information;
  const bool linked = result == 0 || (::stat(draft.c_str(), &information) == 0 && information.st_nlink == 2);
  ::unlink(draft.c_str());
  if (linked) return true;
  if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS)
    throw Error(fmt::format(
        "creating the lock {} failed: its file system has no hard links; store runs on one that does", path.string()));
  // The draft is missing if the process that has just got the lock removed temporary files (RunDirectory).
  if (error != EEXIST && error != ENOENT) throw file_error("creating the lock", path, error);
  return false;
}

void unlink_lock(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw file_error("removing the old lock", path, errno);
}

}  // namespace

DirectoryGuard::DirectoryGuard(const std::filesystem::path& directory)
    : file_(open_file(directory, O_RDONLY | O_DIRECTORY)) {
  while (::flock(*file_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

LockPatience by_file_time(std::chrono::seconds patience) {
  return [patience](const std::filesystem::path& path) {
    std::error_code gone;
    const auto touched = std::filesystem::last_write_time(path, gone);
    return gone || std::filesystem::file_time_type::clock::now() - touched > patience;
  };
}

LockPatience by_watching(std::chrono::seconds patience) {
  using Clock = std::chrono::steady_clock;
  struct Seen {
    std::filesystem::file_time_type touched;
    Clock::time_point last;
    Clock::duration unchanged{};
  };
  const auto all = std::make_shared<std::map<std::filesystem::path, Seen>>();
  return [patience, all](const std::filesystem::path& path) {
    std::error_code gone;
    const auto touched = std::filesystem::last_write_time(path, gone);
    if (gone) return false;  // the next look finds the new owner
    const Clock::time_point now = Clock::now();
    const auto [entry, first] = all->try_emplace(path, Seen{touched, now});
    Seen& seen = entry->second;
    if (seen.touched != touched) seen = {touched, now};
    seen.unchanged += std::min<Clock::duration>(now - std::exchange(seen.last, now), Clock::duration(patience) / 6);
    return seen.unchanged > patience;
  };
}

std::string living_owner(const std::filesystem::path& lock_file, const LockPatience& patience) {
  const std::optional<std::string> text =
      content_if_there(lock_file);  // opening it fetches content and time from the file server
  const std::optional<Owner> owner = text ? parsed(*text) : std::nullopt;
  if (!owner) return {};
  const Life life = life_of(*owner);
  if (life == Life::dead || (life == Life::elsewhere && patience && patience(lock_file))) return {};
  return fmt::format("process {} on {} since {}", owner->pid, owner->host, owner->since);
}

std::string shown_owner(const std::filesystem::path& lock_file) {
  return living_owner(lock_file, by_file_time(usual_patience));
}

void touch(const std::filesystem::path& lock_file) { ::utimensat(AT_FDCWD, lock_file.c_str(), nullptr, 0); }

void remove_lost_lock(const std::filesystem::path& lock_file, const LockPatience& patience) {
  if (!std::filesystem::exists(lock_file)) return;
  const DirectoryGuard guard(lock_file.parent_path());
  if (living_owner(lock_file, patience).empty()) unlink_lock(lock_file);
}

RunLock::RunLock(const std::filesystem::path& directory, const LockPatience& patience)
    : path_(RunFolder{directory}.lock()) {
  const DirectoryGuard guard(directory);  // only one process at a time judges a lock and takes it over
  const Owner self = this_process();
  content_ = written(self);
  while (!make_lock(path_, content_)) {
    if (const std::string owner = living_owner(path_, patience); !owner.empty())
      throw Error(fmt::format("{} is in use by {}; wait for it, or remove {} if that host is gone", directory.string(),
                              owner, path_.string()),
                  Exit::in_use);
    unlink_lock(path_);
  }
  heartbeat_ = std::jthread([path = path_](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any pause;
    while (!stop.stop_requested()) {
      pause.wait_for(lock, stop, usual_patience / 6, [] { return false; });
      if (!stop.stop_requested()) touch(path);
    }
  });
}

RunLock::RunLock(RunLock&& other) noexcept
    : path_(std::move(other.path_)),
      content_(std::exchange(other.content_, {})),
      heartbeat_(std::move(other.heartbeat_)) {}

bool RunLock::held() const { return content_if_there(path_) == content_; }

RunLock::~RunLock() {
  heartbeat_ = {};
  try {
    if (!content_.empty() && held()) ::unlink(path_.c_str());
  } catch (const std::exception&) {  // a lock that cannot be read stays behind and will count as that of a dead process
  }
}

}  // namespace stiefel
