// Questions go to the child's standard input, and answers come from its descriptor 3. Each is a length of 8 bytes, then
// the message.
#include "results/analysis/isolated_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <new>
#include <optional>
#include <utility>

#include <stiefel/error.hpp>

#include "base/descriptor.hpp"
#include "record/run_folder.hpp"
#include "results/analysis/compare_bits.hpp"
#include "results/analysis/run_message.hpp"
#include "training/checkpoint.hpp"

extern char** environ;

namespace stiefel {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int answer_descriptor = 3;

bool send(int to, const std::string& message) {
  const std::uint64_t length = message.size();
  return write_whole(to, {reinterpret_cast<const char*>(&length), sizeof length}) && write_whole(to, message);
}

/// How receiving a message ended: it is whole, the sender ended, or the time was up.
enum class Came { whole, ended, late };

Came read_all(int from, char* to, std::size_t count, std::optional<Clock::time_point> end) {
  while (count > 0) {
    if (end) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now()).count();
      pollfd wanted{from, POLLIN, 0};
      const int ready = left > 0 ? poll(&wanted, 1, int(left)) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return Came::late;
    }
    const ssize_t got = read(from, to, count);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Came::ended;
    to += got, count -= std::size_t(got);
  }
  return Came::whole;
}

/// Receives a message. One of more than `most` bytes is treated as if the sender had ended.
Came receive(int from, std::string& message, std::uint64_t most, std::optional<Clock::time_point> end) {
  std::uint64_t length = 0;
  if (const Came came = read_all(from, reinterpret_cast<char*>(&length), sizeof length, end); came != Came::whole)
    return came;
  if (length > most) return Came::ended;
  message.resize(length);
  return read_all(from, message.data(), length, end);
}

std::string out_of_memory(const RunRequest& request) {
  return fmt::format("reading it needs more than {} MB of memory", request.memory >> 20);
}

/// Seconds of processor time for reading a run. The limit is needed because libhdf5 loops forever on some damaged
/// files.
int seconds_for(const fs::path& run, const RunRequest& request) {
  std::uintmax_t bytes = 0;
  for (const fs::path& file :
       {run, RunFolder{run}.results(), RunFolder{run}.network("best"), RunFolder{run}.network("last")}) {
    std::error_code none;
    const bool counts = fs::is_regular_file(file, none);
    if (const std::uintmax_t size = counts ? fs::file_size(file, none) : 0; !none) bytes += size;
  }
  constexpr std::uintmax_t bytes_a_second = 8 << 20, most = 3600;
  return 10 + int(std::min((request.other.empty() ? 1 : 2) * bytes / bytes_a_second, most));
}

constexpr int busy_machine = 3;  // seconds of wall time per second of processor time; the disk may also be remote

// ---- the child

void limit(int resource, rlim_t most) {
  rlimit now{};
  getrlimit(decltype(RLIMIT_AS)(resource), &now);
  now.rlim_cur = std::min(most, now.rlim_max);
  setrlimit(decltype(RLIMIT_AS)(resource), &now);
}

/// Limits memory to `bytes` beyond what the program takes before it opens a file.
void limit_memory(std::uint64_t bytes) {
#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer reserves terabytes
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  limit(RLIMIT_AS, pages * std::uint64_t(sysconf(_SC_PAGESIZE)) + bytes);
#endif
}

/// Limits processor time from now on. The parent limits wall time.
void limit_time(int seconds) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  limit(RLIMIT_CPU, rlim_t(used.ru_utime.tv_sec + used.ru_stime.tv_sec + seconds + 1));
}

RunData read_or_say_why(const fs::path& path, const RunRequest& request) {
  RunData failed;
  try {
    RunData run = read_run(path, request);
    if (!request.other.empty()) run.differing = differing(path, request.other);
    return run;
  } catch (const std::bad_alloc&) {
    failed.unreadable = out_of_memory(request);
  } catch (const std::exception& error) {
    failed.unreadable = error.what();
  }
  return failed;
}

// ---- the parent

class Child {
 public:
  explicit Child(const RunRequest& request) : request_(request) {}
  ~Child() { stop(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  RunData read(const fs::path& path) {
    RunData run;
    try {
      run = ask(path);
    } catch (const Error& error) {
      stop();
      if (error.code() == Exit::internal) throw;
      run.unreadable = error.what();
    }
    run.path = path;
    return run;
  }

 private:
  RunData ask(const fs::path& path) {
    if (process_ <= 0) start();
    const int allowed = seconds_for(path, request_), seconds = busy_machine * allowed;
    const auto end = Clock::now() + std::chrono::seconds(seconds);
    std::string answer;
    Came came = send(*questions_, path.string()) ? Came::whole : Came::ended;
    if (came == Came::whole)
      came = receive(*answers_, answer, 16 * request_.most_values + (std::uint64_t(64) << 20), end);
    if (came == Came::late) throw Error(fmt::format("reading it takes longer than {} s", seconds), Exit::damaged);
    if (came == Came::ended) throw Error(fate(allowed), Exit::damaged);
    return decode_run(answer);
  }

  /// Stops the child and returns why it ended. `seconds` is its limit of processor time.
  std::string fate(int seconds) {
    const int status = stop();
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
      return fmt::format("reading it takes more than {} s of processor time", seconds);
    if (WIFSIGNALED(status))
      return fmt::format("signal {} ended the process that was reading it", strsignal(WTERMSIG(status)));
    if (WIFEXITED(status) && WEXITSTATUS(status) == int(Exit::exhausted)) return out_of_memory(request_);
    return fmt::format("the process that was reading it ended with exit code {}", WEXITSTATUS(status));
  }

  void start() {
    int questions[2], answers[2];
    if (pipe2(questions, O_CLOEXEC) != 0) fail();
    questions_ = Descriptor(questions[1]);
    const Descriptor reads(questions[0]);
    if (pipe2(answers, O_CLOEXEC) != 0) fail();
    answers_ = Descriptor(answers[0]);
    const Descriptor writes(answers[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, *reads, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, *writes, answer_descriptor);
    // Libraries that fail on a file would write into the output of the command.
    for (int descriptor : {STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_WRONLY, 0);
    const char* words[] = {"stiefel", reading_command, nullptr};
    errno = posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, const_cast<char**>(words), environ);
    const int fault = errno;
    posix_spawn_file_actions_destroy(&actions);
    if ((errno = fault) != 0) fail();
    if (!send(*questions_, encode(request_))) throw Error(fate(0), Exit::internal);
  }

  /// Ends the child unless it has ended already, and returns its status.
  int stop() {
    if (process_ <= 0) return 0;
    int status = 0;
    questions_.reset();
    answers_.reset();
    if (waitpid(process_, &status, WNOHANG) != process_) {
      kill(process_, SIGKILL);
      while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
      }
    }
    process_ = 0;
    return status;
  }

  [[noreturn]] static void fail() {
    throw Error(fmt::format("cannot start the process that reads result files: {}", std::strerror(errno)),
                Exit::internal);
  }

  const RunRequest& request_;
  pid_t process_ = 0;
  Descriptor questions_, answers_;
};

}  // namespace

int serve_reads() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_CORE, 0);
  constexpr std::uint64_t longest_question = 1 << 20;
  std::string question;
  if (receive(STDIN_FILENO, question, longest_question, {}) != Came::whole) return int(Exit::usage);
  const RunRequest request = decode_request(question);
  limit_memory(request.memory);
  while (receive(STDIN_FILENO, question, longest_question, {}) == Came::whole) {
    limit_time(seconds_for(question, request));
    if (!send(answer_descriptor, encode(read_or_say_why(question, request)))) return int(Exit::internal);
  }
  return int(Exit::done);
}

void read_runs(const std::vector<fs::path>& paths, const RunRequest& request,
               const std::function<void(RunData&&)>& use) {
  Child child(request);
  for (const fs::path& path : paths) use(child.read(path));
}

std::vector<RunData> read_runs(const std::vector<fs::path>& paths, const RunRequest& request) {
  std::vector<RunData> runs;
  read_runs(paths, request, [&](RunData&& run) { runs.push_back(std::move(run)); });
  return runs;
}

void demand_readable(const fs::path& network) {
  const std::uint64_t bytes = fs::file_size(network);
  const RunRequest request{.paths = {"/weights", "/state"},
                           .network = true,
                           .most_values = bytes + (1 << 20),
                           .memory = 32 * bytes + (std::uint64_t(1) << 30)};
  for (const RunData& read : read_runs({network}, request))
    if (!read.unreadable.empty())
      throw Error(fmt::format("{} is damaged, or not a network: {}", network.string(), read.unreadable), Exit::damaged);
}

}  // namespace stiefel
