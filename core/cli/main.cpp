// The `stiefel` program: finds the command, runs it, and turns errors into one sentence and an exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <stiefel/error.hpp>
#include <stiefel/product.hpp>
#include "base/say.hpp"
#include "config/shipped.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "sdk/blas.hpp"
#include "sdk/kernel/simd_choice.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"
#include "cli/sudden_end.hpp"

namespace stiefel::cli {
namespace {

int dispatch(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    const bool of_command = words.size() > 1 && words[0] == "help" && words[1] != "help";
    fmt::print("{}", of_command ? help_text(find_command(words[1])) : help_text());
    return int(words.empty() ? Exit::usage : Exit::done);
  }
  if (words[0] == "--version" || words[0] == "-v") {
    fmt::print("stiefel {}\nBLAS: {} kernels of {}\nSIMD: {}\n", STIEFEL_VERSION, blas_core(), blas_configuration(),
               product_target());
    return int(Exit::done);
  }
  if (words[0] == "--prefix") {
    fmt::print("{}\n", installation_prefix().string());
    return int(Exit::done);
  }
  if (words[0] == reading_command) return serve_reads();
  const Command& command = find_command(words[0]);
  const std::span<const std::string> rest(words.data() + 1, words.size() - 1);
  for (const std::string& word : rest) {
    if (word == "--") break;
    if (word != "--help" && word != "-h") continue;
    fmt::print("{}", help_text(command));
    return int(Exit::done);
  }
  if (words[0] != "check") tell_of_crashes();  // `check` itself reports crashes of its children
  return command.run(rest);
}

/// Makes malloc keep freed memory. Every step allocates the same sizes again, and pages that were not returned need not
/// be cleared again.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

/// Opens closed standard streams on /dev/null. Otherwise the next file to be opened would become such a stream.
void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDWR) != stream) _exit(int(Exit::internal));
}

/// Throws Error if the stack is so small that a run would end with a segmentation fault.
void refuse_small_stack() {
  constexpr rlim_t least = 512 << 10;
  rlimit stack;
  if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < least)
    throw Error(fmt::format("the stack is limited to {} KB, but {} KB are needed; raise the limit with ulimit -s",
                            stack.rlim_cur >> 10, least >> 10),
                Exit::exhausted);
}

/// Ends the program without destructors of static objects: those of plugins could end it with another code. They run
/// only under a sanitizer, which reports then.
[[noreturn]] void leave(int code) {
  std::fflush(nullptr);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::exit(code);
#else
  _exit(code);
#endif
}

}  // namespace

}  // namespace stiefel::cli

int main(int count, char** words) {
  signal(SIGPIPE, SIG_IGN);
  for (const int number : {SIGUSR1, SIGUSR2}) signal(number, SIG_IGN);  // until a command catches them
  signal(SIGCHLD, SIG_DFL);  // if a parent ignored it, waitpid() would not find children
  signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes shows as a failed write, and is reported as one
  try {
    stiefel::cli::open_closed_streams();
    stiefel::cli::refuse_small_stack();
    stiefel::cli::follow_worker();
    stiefel::cli::keep_freed_memory();
    stiefel::start_blas();
    stiefel::choose_simd_target();
    const std::vector<std::string> all(words + 1, words + count);
    stiefel::cli::leave(stiefel::cli::written(stiefel::cli::dispatch(all)));
  } catch (...) {
    stiefel::cli::leave(stiefel::cli::tell_error());
  }
}
