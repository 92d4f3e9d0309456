// Starts processes with posix_spawn, which is safe with other threads.
#include "sweep/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/trim.hpp>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <stiefel/error.hpp>

#include "base/file_content.hpp"
#include "base/machine.hpp"
#include "base/printable.hpp"

extern char** environ;

namespace stiefel {
namespace {

int number_in(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  const int number = text ? std::atoi(text) : otherwise;
  return number >= 0 ? number : otherwise;
}

/// Whether a variable would make the child a part of the worker's MPI job.
bool of_mpi(std::string_view variable) {
  return variable.starts_with("OMPI_") || variable.starts_with("PMIX_") || variable.starts_with("PMI_");
}

std::vector<std::string> environment_of_child(const std::string& id) {
  std::vector<std::string> variables = {fmt::format("STIEFEL_PARENT={}", ::getpid()), "STIEFEL_RUN_ID=" + id};
  for (char** variable = environ; *variable; ++variable)
    if (const std::string_view text = *variable;
        !of_mpi(text) && !text.starts_with("STIEFEL_PARENT=") && !text.starts_with("STIEFEL_RUN_ID="))
      variables.emplace_back(text);
  return variables;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// While this exists, this thread runs on `cores`, which a child that it starts inherits.
class Pinned {
 public:
  explicit Pinned(const cpu_set_t& cores) {
    changed_ = sched_getaffinity(0, sizeof before_, &before_) == 0 && sched_setaffinity(0, sizeof cores, &cores) == 0;
  }
  ~Pinned() {
    if (changed_) sched_setaffinity(0, sizeof before_, &before_);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_{};
  bool changed_;
};

}  // namespace

CoreShares::CoreShares(int places, int threads) {
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof mine, &mine) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &mine)) cores_.push_back(core);
  if (cores_.empty()) cores_.push_back(0);
  const int neighbours = std::max(1, number_in("OMPI_COMM_WORLD_LOCAL_SIZE", 1));
  const int usable = std::min(int(cores_.size()), usable_cores());
  threads_ = threads > 0 ? threads : std::max(1, usable / (places * neighbours));
  first_ = number_in("OMPI_COMM_WORLD_LOCAL_RANK", 0) * places;
  divided_ = neighbours > 1 || (places > 1 && threads == 0);
}

cpu_set_t CoreShares::of(int place) const {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < (divided_ ? threads_ : int(cores_.size())); ++i)
    CPU_SET(cores_[std::size_t((first_ + place) * threads_ + i) % cores_.size()], &set);
  return set;
}

pid_t start_child(const ChildProgram& program, const cpu_set_t& cores) {
  std::vector<std::string> arguments = {std::filesystem::read_symlink("/proc/self/exe").string()};
  arguments.insert(arguments.end(), program.words.begin(), program.words.end());
  const std::vector<std::string> environment = environment_of_child(program.id);
  const std::filesystem::path log = std::filesystem::absolute(program.log);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  if (!program.directory.empty()) posix_spawn_file_actions_addchdir_np(&files, program.directory.c_str());
  // Only the worker gets the signals of the terminal; it passes them on once.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t waiting;  // blocked until the run handles them
  sigemptyset(&waiting);
  for (const int number : {SIGUSR1, SIGUSR2}) sigaddset(&waiting, number);
  posix_spawnattr_setsigmask(&attributes, &waiting);
  pid_t child = 0;
  int fault;
  {
    const Pinned pinned(cores);
    fault = posix_spawn(&child, arguments[0].c_str(), &files, &attributes, pointers(arguments).data(),
                        pointers(environment).data());
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (fault != 0)
    throw Error(fmt::format("cannot start a run with its output in {}: {}", log.string(), std::strerror(fault)),
                Exit::exhausted);
  return child;
}

std::string last_message(const std::filesystem::path& log, std::uintmax_t begin) {
  static constexpr std::string_view mark = "\nstiefel: ";
  const std::string text = "\n" + boost::trim_right_copy(file_tail(log, begin));
  const std::size_t error = text.rfind(mark);
  const std::string last = text.substr(error == text.npos ? text.rfind('\n') + 1 : error + mark.size());
  return last.empty() ? "nothing" : printable_lines(last);
}

}  // namespace stiefel
