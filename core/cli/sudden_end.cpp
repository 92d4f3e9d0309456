// This code runs in signal handlers and without free memory, so it makes nothing but system calls.
#include "cli/sudden_end.hpp"

#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>

#include <stiefel/error.hpp>
#include "host/plugin_call.hpp"

namespace stiefel::cli {
namespace {

constexpr std::size_t most_parts = 16;

/// The folder of the run whose log has the descriptor `log`, stored in `memory`; empty if there is none.
std::string_view folder_of(int log, std::span<char> memory) noexcept {
  if (log < 0) return {};
  char link[32] = "/proc/self/fd/";
  *std::to_chars(link + std::strlen(link), link + sizeof link - 1, log).ptr = '\0';
  const ssize_t size = readlink(link, memory.data(), memory.size());
  const std::string_view file(memory.data(), std::size_t(std::max<ssize_t>(size, 0)));
  return file.substr(0, std::min(file.rfind('/'), file.size()));
}

/// Writes a line with one call, so that no other output is interleaved.
void write_line(int descriptor, std::string_view beginning, std::initializer_list<std::string_view> sentence,
                std::string_view run) noexcept {
  std::array<iovec, most_parts> parts;
  std::size_t count = 0;
  const auto add = [&](std::string_view text) { parts[count++] = {const_cast<char*>(text.data()), text.size()}; };
  add(beginning);
  for (const std::string_view part : sentence)
    if (count + 4 < most_parts) add(part);
  if (!run.empty()) add("; resume the run from its last checkpoint with: stiefel resume '"), add(run), add("'");
  add("\n");
  [[maybe_unused]] const auto written = writev(descriptor, parts.data(), int(count));
}

/// Writes the message to stderr and the run's log. Only the first thread does so; the others wait for the program's
/// end.
void tell_the_end(std::initializer_list<std::string_view> sentence) noexcept {
  static std::atomic_flag ending;
  while (ending.test_and_set()) pause();
  static char memory[PATH_MAX];
  const int log = log_of_run;
  const std::string_view run = folder_of(log, memory);
  write_line(STDERR_FILENO, isatty(STDERR_FILENO) ? "\nstiefel: " : "stiefel: ", sentence,
             run);  // there may be a progress line on a terminal
  if (log >= 0) write_line(log, "failed: ", sentence, run);
}

struct Crash {
  int signal;
  std::string_view name;
};
constexpr Crash crashes[] = {{SIGSEGV, "a segmentation fault"},
                             {SIGBUS, "a bus error"},
                             {SIGFPE, "a division by zero"},
                             {SIGILL, "an illegal instruction"},
                             {SIGABRT, "abort()"}};
struct sigaction before[NSIG];

void on_crash(int number, siginfo_t* info, void*) {
  std::string_view name;
  for (const Crash& crash : crashes)
    if (crash.signal == number) name = crash.name;
  const bool sent = info->si_code <= 0 && info->si_pid != getpid();
  if (sent)
    tell_the_end({"another process sent the signal for ", name});
  else if (const PluginCall* call = PluginCall::innermost())
    tell_the_end({"the program crashed (", name, ") in ", call->verb, "() of ", call->plugin, " (", call->file,
                  "): most likely a bug in the plugin; test it with `stiefel check`"});
  else
    tell_the_end({"the program crashed (", name, "), a bug in stiefel itself: please report it"});
  sigaction(number, &before[number], nullptr);
  raise(number);  // takes effect when the handler has returned
}

const pid_t process = getpid();

void on_exit_call(int, void*) {
  const PluginCall* call = PluginCall::innermost();
  if (!call || getpid() != process) return;
  tell_the_end({"exit() was called in ", call->verb, "() of ", call->plugin, " (", call->file,
                "); let the plugin throw stiefel::Error"});
  _exit(int(Exit::plugin));
}

}  // namespace

std::atomic<int> log_of_run{-1};

void end_out_of_memory() noexcept {
  tell_the_end({"out of memory; make the batch, the network or the sequences smaller, or free memory"});
  _exit(int(Exit::exhausted));
}

void tell_of_crashes() {
  static char stack[64 << 10];  // for the main thread, whose own stack may have overflowed
  const stack_t alternative{stack, 0, sizeof stack};
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  for (const Crash& crash : crashes) sigaction(crash.signal, &action, &before[crash.signal]);
  on_exit(on_exit_call, nullptr);
}

}  // namespace stiefel::cli
