/// The message of a program that ends without an exception. Nothing is undone: the last checkpoint remains.
#pragma once

#include <atomic>

namespace stiefel::cli {

/// Where the message goes in addition to stderr: the descriptor of a run's log.txt, or −1.
extern std::atomic<int> log_of_run;

/// Reports that memory is exhausted (Exit::exhausted); allocates none itself.
[[noreturn]] void end_out_of_memory() noexcept;

/// From now on a crash is reported, with the plugin that was called, before it takes its course (a core file, a
/// sanitizer's report), and exit() in a plugin becomes Exit::plugin with a message.
void tell_of_crashes();

}  // namespace stiefel::cli
