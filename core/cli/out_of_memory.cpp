#include "out_of_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <string_view>

#include <stiefel/error.hpp>

namespace stiefel::cli {
namespace {

/// In one call, so that no other line comes between.
void write_sentence(int descriptor, std::string_view beginning) noexcept {
  constexpr std::string_view sentence =
      "out of memory; make the batch, the network or the sequences smaller, or free memory and go on with: stiefel resume RUN\n";
  const auto part = [](std::string_view text) { return iovec{const_cast<char*>(text.data()), text.size()}; };
  const iovec parts[] = {part(beginning), part(sentence)};
  [[maybe_unused]] const auto written = writev(descriptor, parts, 2);
}

}  // namespace

std::atomic<int> log_of_run{-1};

void end_out_of_memory() noexcept {
  static std::atomic_flag ending;
  while (ending.test_and_set()) pause();                                               // another thread is at it
  write_sentence(STDERR_FILENO, isatty(STDERR_FILENO) ? "\nstiefel: " : "stiefel: ");  // there may be a progress line on a terminal
  if (const int log = log_of_run; log >= 0) write_sentence(log, "failed: ");
  _exit(int(Exit::exhausted));
}

}  // namespace stiefel::cli
