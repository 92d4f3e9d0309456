// The `stiefel` program: finds the command, runs it, turns errors into one sentence and an exit code.
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <map>
#include <new>
#include <system_error>
#include <vector>

#include <blas.hpp>
#include <results/hdf5.hpp>
#include <results/isolated_reader.hpp>
#include <simd_choice.hpp>
#include <stiefel/error.hpp>

#include "command_table.hpp"
#include "commands.hpp"

namespace stiefel::cli {
namespace {

using Run = int (*)(std::span<const std::string>);

const std::map<std::string, Run, std::less<>> runners = {
    {"run", run_command},         {"resume", resume_command},        {"repeat", repeat_command},     {"report", report_command},
    {"sample", sample_command},   {"compare", compare_command},      {"diff", diff_command},         {"export", export_command},
    {"inspect", inspect_command}, {"validate", validate_command},    {"describe", describe_command}, {"list", list_command},
    {"schema", schema_command},   {"check", check_command},          {"new", new_command},           {"bench", bench_command},
    {"data", data_command},       {"completion", completion_command}};

int dispatch(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    fmt::print("{}", help_text());
    return int(words.empty() ? Exit::usage : Exit::done);
  }
  if (words[0] == "--version") {
    fmt::print("stiefel {}\n", STIEFEL_VERSION);
    return int(Exit::done);
  }
  if (words[0] == reading_command) return serve_reads();
  const Command& command = find_command(words[0]);
  const std::span<const std::string> rest(words.data() + 1, words.size() - 1);
  for (const std::string& word : rest)
    if (word == "--help" || word == "-h") {
      fmt::print("{}", help_text(command));
      return int(Exit::done);
    }
  return runners.find(command.name)->second(rest);
}

constexpr char memory_ran_out[] = "stiefel: out of memory; make the batch, the network or the sequences smaller\n";
std::atomic<bool> out_of_memory{false};

/// Some functions of libraries are declared not to throw and need memory: there is no way back from them, but a sentence and an exit code.
void end_when_out_of_memory() {
  std::set_new_handler([] {
    out_of_memory = true;
    throw std::bad_alloc();
  });
  std::set_terminate([] {
    if (!out_of_memory) std::abort();
    if (write(STDERR_FILENO, memory_ran_out, sizeof memory_ran_out - 1) < 0) std::abort();
    _exit(int(Exit::exhausted));
  });
}

/// Every step allocates the same sizes again: memory is not given back in between, so that its pages need not be cleared anew.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

}  // namespace
}  // namespace stiefel::cli

int main(int count, char** words) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes shows as a failed write, and is reported as one
  try {
    stiefel::cli::end_when_out_of_memory();
    stiefel::cli::keep_freed_memory();
    stiefel::start_blas();
    stiefel::choose_simd_target();
    return stiefel::cli::dispatch(std::vector<std::string>(words + 1, words + count));
  } catch (const stiefel::Error& error) {
    fmt::print(stderr, "stiefel: {}\n", error.what());
    return int(error.code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "{}", stiefel::cli::memory_ran_out);
    return int(stiefel::Exit::exhausted);
  } catch (const std::system_error& error) {
    fmt::print(stderr, "stiefel: {}\n", error.what());
    return int(error.code() == std::errc::not_enough_memory ? stiefel::Exit::exhausted : stiefel::Exit::internal);
  } catch (const std::exception& error) {
    fmt::print(stderr, "stiefel: {}\n", error.what());
    return int(stiefel::Exit::internal);
  }
}
