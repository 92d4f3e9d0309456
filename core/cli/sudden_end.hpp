/// Messages of a program that ends without an exception. Nothing is cleaned up; the last checkpoint remains.
#pragma once

#include <atomic>

namespace stiefel::cli {

/// The descriptor of a run's log.txt, to which the message goes in addition to stderr; −1 if there is none.
extern std::atomic<int> log_of_run;

/// Reports that memory is exhausted and ends the program (Exit::exhausted), without allocating any.
[[noreturn]] void end_out_of_memory() noexcept;

/// From now on, a crash is reported with the plugin that was being called, before it takes its course (a core file, a
/// sanitizer's report). A call of exit() in a plugin ends the program with a message and Exit::plugin.
void tell_of_crashes();

}  // namespace stiefel::cli
