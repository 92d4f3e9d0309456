// `stiefel run FILE [key.path=value...]`: train, evaluate, record.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include <config/load.hpp>
#include <trainer/trainer.hpp>

#include "command_table.hpp"
#include "commands.hpp"
#include "progress.hpp"

namespace stiefel::cli {
namespace {

std::atomic<int> signal_number{0};

/// Once: stop after the step. Twice: stop now.
void on_signal(int number) {
  if (signal_number.exchange(number) != 0) _exit(128 + number);
}

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
}

int report(const RunSummary& summary) {
  fmt::print("{}: {}\n", summary.state, summary.message);
  fmt::print("results: {}\n", (summary.directory / "results.h5").string());
  return summary.exit_code;
}

}  // namespace

int run_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("run", words);
  if (arguments.positional.empty()) throw Error("name the file: stiefel run FILE [key.path=value...]");
  std::vector<std::string> overrides(arguments.positional.begin() + 1, arguments.positional.end());
  if (arguments.has("--threads")) overrides.push_back("threads=" + arguments.value("--threads"));
  Registry registry;
  for (const std::string& warning : registry.warnings()) fmt::print(stderr, "warning: {}\n", warning);
  const LoadedExperiment loaded = load_experiment(arguments.positional.front(), overrides, registry);

  RunOptions options;
  options.output = arguments.value("--output", "runs");
  options.data_directory = data_directory(arguments);
  options.signal = &signal_number;
  options.command_line = fmt::format("stiefel run {}", fmt::join(words, " "));
  if (arguments.has("--dry-run")) {
    for (const std::string& line : dry_run(loaded, registry, options).lines) fmt::print("{}\n", line);
    return int(Exit::done);
  }
  catch_signals();
  TerminalObserver observer(choose_verbosity(arguments.has("--quiet"), !arguments.has("--no-progress")));
  return report(run_experiment(loaded, registry, options, observer));
}

}  // namespace stiefel::cli
