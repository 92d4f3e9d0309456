#include "running.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <printable.hpp>

namespace stiefel::cli {
namespace {

std::atomic<int> signal_number{0};
std::atomic<bool> save{false};

void on_stop(int number) {
  if (signal_number.exchange(number) != 0) _exit(128 + number);
}
void on_save(int) { save = true; }

void catch_signals() {
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = on_stop;
  for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  action.sa_handler = on_save;
  sigaction(SIGUSR1, &action, nullptr);
}

}  // namespace

Registry found_plugins(const std::vector<std::filesystem::path>& extra) { return Registry(extra, print_warning); }

void print_warning(const std::string& sentence) { fmt::print(stderr, "warning: {}\n", printable(sentence)); }

std::filesystem::path run_folder(const std::string& name) {
  const std::filesystem::path directory = name;
  if (!exists(directory / "config.yaml"))
    throw Error(fmt::format("{} is not the folder of a run: it has no config.yaml; runs are in runs/NAME/ID", name));
  return directory;
}

RunOptions running_options(const Arguments& arguments, const std::string& command, std::span<const std::string> words) {
  catch_signals();
  RunOptions options;
  options.output = arguments.value("--output", "runs");
  options.data_directory = data_directory(arguments);
  options.signal = &signal_number;
  options.save = &save;
  options.command_line = fmt::format("stiefel {} {}", command, fmt::join(words, " "));
  return options;
}

int report(const RunSummary& summary) {
  fmt::print("{}: {}\n", summary.state, printable_lines(summary.message));
  fmt::print("results: {}\n", (summary.directory / "results.h5").string());
  return summary.exit_code;
}

}  // namespace stiefel::cli
