// HTTP by Python's urllib, in a process of python/stiefel/fetch.py. Its standard output is a sequence of lines:
//   fetching              now it runs; lines before this one are not its own
//   answer STATUS RANGE   the final response; RANGE is its Content-Range, if it has one
//   bytes COUNT           followed by as many bytes
//   end HOW REASON        the last line; HOW is complete, closed, redirects or unreachable
// It ends when its standard input does, hence with this program.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <stiefel/error.hpp>
#include "base/descriptor.hpp"
#include "base/file_content.hpp"
#include "base/number_from.hpp"
#include "base/printable.hpp"

#include "cli/http.hpp"

extern char** environ;

namespace stiefel::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// `python -m stiefel.fetch`, except that the current folder, which may hold anything, is not searched for modules.
constexpr const char* script =
    "import sys; sys.path = [folder for folder in sys.path if folder]; import stiefel.fetch; stiefel.fetch.main()";

class PythonTransfer {
 public:
  explicit PythonTransfer(const HttpGet& get) : get_(get), stall_(std::max(1.0, get.stall)) {
    if (const char* named = std::getenv("STIEFEL_PYTHON"); named && *named) python_ = named, named_ = true;
    start();
  }
  ~PythonTransfer() { stop(); }
  PythonTransfer(const PythonTransfer&) = delete;
  PythonTransfer& operator=(const PythonTransfer&) = delete;

  HttpEnding run() {
    std::string line;
    while (next_line(line)) {
      const std::size_t blank = std::min(line.find(' '), line.size());
      const std::string word = line.substr(0, blank), rest = boost::trim_copy(line.substr(blank));
      const auto count = number_from<std::uintmax_t>(rest);
      if (!begun_) {
        begun_ = line == "fetching";
        watch();
      } else if (word == "answer") {
        tell_answer(rest);
      } else if (word == "bytes" && count) {
        if (!pass_on(*count)) break;
      } else if (word == "end") {
        return ending(rest);
      } else {
        fail(fmt::format("stiefel.fetch of {} sends the unknown line '{}'; install the package stiefel {} for it",
                         python_, printable(line.substr(0, 80)), STIEFEL_VERSION));
      }
    }
    if (late_) return {HttpEnd::stalled, ""};
    if (stopped_) return {HttpEnd::stopped, ""};
    fail(fate());
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(fmt::format("cannot fetch {}: {}", get_.url, why), Exit::data);
  }

  void start() {
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0) fail_to_start(errno);
    input_ = Descriptor(input[1]);
    const Descriptor reads(input[0]);
    if (pipe2(output, O_CLOEXEC) != 0) fail_to_start(errno);
    output_ = Descriptor(output[0]);
    const Descriptor writes(output[1]);
    messages_ = Descriptor(memfd_create("stiefel.fetch", MFD_CLOEXEC));
    if (*messages_ < 0) fail_to_start(errno);

    const std::string begin = std::to_string(get_.begin);
    const char* words[] = {python_.c_str(), "-c", script, get_.url.c_str(), begin.c_str(), nullptr};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, *reads, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, *writes, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, *messages_, STDERR_FILENO);
    const int fault = posix_spawnp(&process_, words[0], &files, nullptr, const_cast<char**>(words), environ);
    posix_spawn_file_actions_destroy(&files);
    if (fault != 0) fail_to_start(fault);
  }

  [[noreturn]] void fail_to_start(int fault) {
    process_ = 0;
    if (named_)
      fail(fmt::format("STIEFEL_PYTHON names {}, which cannot be started ({})", python_, std::strerror(fault)));
    if (fault == ENOENT)
      fail("there is no python3 on the PATH; install Python 3.9 or newer, or name it in STIEFEL_PYTHON");
    fail(fmt::format("{} cannot be started ({})", python_, std::strerror(fault)));
  }

  /// From now on, the server has the stall time for its next bytes.
  void watch() {
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(stall_));
    watched_bytes_ = 0;
  }

  /// Waits for more output. False if there is none, because the process has ended or the transfer has stalled. The
  /// time until Python runs does not count.
  bool receive() {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
      pollfd wanted{*output_, POLLIN, 0};
      const int ready = poll(&wanted, 1, begun_ ? int(std::max<decltype(left)>(left, 0)) : -1);
      late_ = ready == 0;
      if (late_) return false;
      char bytes[1 << 16];
      const ssize_t got = ready < 0 ? -1 : read(*output_, bytes, sizeof bytes);
      if (got < 0 && errno == EINTR) continue;
      ended_ = got <= 0;
      if (!ended_) received_.append(bytes, std::size_t(got));
      return !ended_;
    }
  }

  bool next_line(std::string& line) {
    constexpr std::size_t longest = 1 << 16;
    std::size_t end;
    while ((end = received_.find('\n')) == received_.npos) {
      if (received_.size() > longest) fail(fmt::format("stiefel.fetch of {} sends no lines", python_));
      if (!receive()) return false;
    }
    line = received_.substr(0, end);
    received_.erase(0, end + 1);
    return true;
  }

  void tell_answer(const std::string& text) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    watch();
    get_.answer(number_from<long>(text.substr(0, blank)).value_or(0), boost::trim_copy(text.substr(blank)));
  }

  /// Passes bytes on. False if the output ends before, or if the receiver stops.
  bool pass_on(std::uintmax_t count) {
    while (count > 0) {
      if (received_.empty() && !receive()) return false;
      const std::size_t size = std::size_t(std::min<std::uintmax_t>(count, received_.size()));
      stopped_ = !get_.take(std::string_view(received_).substr(0, size));
      if (stopped_) return false;
      received_.erase(0, size);
      count -= size;
      watched_bytes_ += size;
      if (double(watched_bytes_) >= double(slowest) * stall_) watch();
    }
    return true;
  }

  static HttpEnding ending(const std::string& text) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string how = text.substr(0, blank);
    if (how == "complete") return {HttpEnd::complete, ""};
    if (how == "closed") return {HttpEnd::closed, ""};
    if (how == "redirects") return {HttpEnd::redirects, ""};
    return {HttpEnd::unreachable, printable(boost::trim_copy(text.substr(blank)))};
  }

  /// Ends the process unless it has ended already, and returns its status.
  int stop() {
    int status = 0;
    if (process_ <= 0) return status;
    input_.reset();
    if (!ended_) kill(process_, SIGKILL);
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = 0;
    return status;
  }

  /// Why the process ended without its last line.
  std::string fate() {
    const int status = stop();
    std::string last = boost::trim_copy(file_tail(fmt::format("/proc/self/fd/{}", *messages_)));
    last = printable(last.substr(last.rfind('\n') + 1));
    if (!begun_ && last.find("No module named 'stiefel") != last.npos)
      return fmt::format("{} lacks the package stiefel {}; install it, or name a Python that has it in STIEFEL_PYTHON",
                         python_, STIEFEL_VERSION);
    const std::string end = WIFSIGNALED(status) ? fmt::format("by signal {}", strsignal(WTERMSIG(status)))
                                                : fmt::format("with exit code {}", WEXITSTATUS(status));
    return fmt::format("stiefel.fetch of {} ended {}{}", python_, end, last.empty() ? "" : " (" + last + ")");
  }

  const HttpGet& get_;
  const double stall_;
  std::string python_ = "python3";
  bool named_ = false;  // by STIEFEL_PYTHON
  pid_t process_ = 0;
  Descriptor input_, output_, messages_;  // its standard streams
  std::string received_;                  // and not yet used
  Clock::time_point end_;                 // of the stall time
  std::uintmax_t watched_bytes_ = 0;      // since that began
  bool begun_ = false, ended_ = false, late_ = false, stopped_ = false;
};

}  // namespace

HttpEnding http_get(const HttpGet& get) { return PythonTransfer(get).run(); }

}  // namespace stiefel::cli
