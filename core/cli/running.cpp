#include "cli/running.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include "base/printable.hpp"
#include "base/say.hpp"
#include "sdk/blas.hpp"

#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/sudden_end.hpp"

namespace stiefel::cli {
namespace {

std::atomic<int> signal_number{0};
std::atomic<bool> save_wanted{false};
bool followed = false;  // a worker passes signals on, and kills a run that is to end at once

void stop_run(int number) {
  if (signal_number.exchange(number) != 0 && !followed) _exit(128 + number);
}
void save_run(int) { save_wanted = true; }

}  // namespace

void catch_signals(void (*on_stop)(int), void (*on_save)(int)) {
  sigset_t listened;
  sigemptyset(&listened);
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = on_stop;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
    struct sigaction before {};
    const bool nohup = sigaction(number, nullptr, &before) == 0 && number == SIGHUP && before.sa_handler == SIG_IGN;
    if (!nohup) sigaction(number, &action, nullptr);
    sigaddset(&listened, number);
  }
  action.sa_handler = on_save;
  if (on_save) sigaction(SIGUSR1, &action, nullptr);
  sigaddset(&listened, SIGUSR1);
  sigprocmask(SIG_UNBLOCK, &listened, nullptr);
}

Registry found_plugins(const std::vector<std::filesystem::path>& extra) { return Registry(extra, print_warning); }

void print_warning(const std::string& sentence) { say("warning: {}\n", printable(sentence)); }

std::filesystem::path run_folder(const std::string& name) {
  const std::filesystem::path directory = name;
  if (!exists(directory / "config.yaml"))
    throw Error(fmt::format("{} is not a run folder: it has no config.yaml; runs are in runs/NAME/ID", name));
  return directory;
}

void follow_worker() {
  const char* worker = std::getenv("STIEFEL_PARENT");
  if (!worker) return;
  const long process = std::atol(worker);
  unsetenv("STIEFEL_PARENT");
  followed = true;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != process) _exit(128 + SIGTERM);  // it was gone before that
}

RunOptions running_options(const Arguments& arguments, const std::string& command, std::span<const std::string> words) {
  catch_signals(stop_run, save_run);
  RunOptions options;
  options.output = arguments.value("--output", "runs");
  options.data_directory = data_directory(arguments);
  options.signal = &signal_number;
  options.save = &save_wanted;
  options.log = &log_of_run;
  options.until = whole_number(arguments, "--until", 0);
  options.command_line = fmt::format("stiefel {} {}", command, fmt::join(words, " "));
  return options;
}

int report(const RunSummary& summary) {
  fmt::print("{}: {}\n", summary.state, printable_lines(summary.message));
  fmt::print("results: {}\n", (summary.directory / "results.h5").string());
  if (summary.exit_code == int(Exit::diverged)) say("stiefel: {}\n", printable_lines(summary.message));
  return summary.exit_code;
}

int train(const Arguments& arguments, RunOptions& options, const std::function<RunSummary(RunObserver&)>& work) {
  const std::unique_ptr<Ranks> ranks = arguments.has("--mpi") ? mpi_ranks() : std::make_unique<Ranks>();
  options.ranks = ranks.get();
  if (const std::string slow = blas_warning(); !slow.empty() && ranks->first() && !arguments.has("--quiet"))
    print_warning(slow);
  try {
    TerminalObserver observer(
        choose_verbosity(arguments.has("--quiet") || !ranks->first(), !arguments.has("--no-progress")));
    const RunSummary summary = work(observer);
    return ranks->first() ? report(summary) : summary.exit_code;
  } catch (...) {
    if (ranks->count() == 1) throw;
    // An error of all ranks is reported by the first alone, whose abort ends the others: SIGKILL comes a second after
    // SIGTERM.
    if (!ranks->first()) std::this_thread::sleep_for(std::chrono::seconds(3));
    const int code = tell_error();
    ranks->abort(code);  // the others would wait for this one
    return code;
  }
}

}  // namespace stiefel::cli
