// Errors become one sentence on stderr and an exit code.
#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include <stiefel/error.hpp>
#include "base/file_error.hpp"
#include "base/printable.hpp"
#include "base/say.hpp"

#include "cli/commands.hpp"
#include "cli/sudden_end.hpp"

namespace stiefel::cli {
namespace {

int tell(const Error& error) {
  say("stiefel: {}\n", error.what());
  return int(error.code());
}

/// Reports an error in writing to stdout. Returns the exit code.
int tell_unwritten(int error) {
  if (error == EPIPE) return 128 + SIGPIPE;  // the reader has exited
  return tell(file_error("writing", "standard output", error));
}

}  // namespace

int written(int code) { return std::fflush(stdout) == 0 ? code : tell_unwritten(errno); }

int tell_error() {
  try {
    throw;
  } catch (const Error& error) {
    return tell(error);
  } catch (const std::bad_alloc&) {
    end_out_of_memory();
  } catch (const std::filesystem::filesystem_error& error) {
    const bool unnamed = error.path1().empty();  // the current folder was removed
    return tell(file_error("working on", unnamed ? "the current folder" : error.path1(), error.code().value()));
  } catch (const std::system_error& error) {
    if (std::ferror(stdout)) return tell_unwritten(error.code().value());
    const bool exhausted =
        error.code() == std::errc::not_enough_memory || error.code() == std::errc::resource_unavailable_try_again;
    say("stiefel: {}{}\n", printable_lines(error.what()),
        exhausted
            ? ": no further thread can start, for want of memory or by the limit of processes (ulimit -u); use fewer "
              "with --threads"
            : "");
    return int(exhausted ? Exit::exhausted : Exit::internal);
  } catch (const std::exception& error) {
    say("stiefel: {}\n", printable_lines(error.what()));
    return int(Exit::internal);
  }
}

}  // namespace stiefel::cli
