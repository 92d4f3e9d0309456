#include "out_of_memory.hpp"

#include <unistd.h>

#include <string_view>

#include <stiefel/error.hpp>

namespace stiefel::cli {

void end_out_of_memory() noexcept {
  constexpr std::string_view sentence =
      "\nstiefel: out of memory; make the batch, the network or the sequences smaller, or free memory and go on with: stiefel resume RUN\n";
  const std::string_view shown = sentence.substr(isatty(STDERR_FILENO) ? 0 : 1);  // there may be a progress line on a terminal
  [[maybe_unused]] const auto written = write(STDERR_FILENO, shown.data(), shown.size());
  _exit(int(Exit::exhausted));
}

}  // namespace stiefel::cli
