#include "cli/running.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <thread>

#include "base/printable.hpp"
#include "base/say.hpp"
#include "base/stop_signals.hpp"
#include "config/scalars.hpp"
#include "conformance/check.hpp"
#include "record/run_folder.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "sdk/blas.hpp"
#include "training/checkpoint.hpp"

#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/sudden_end.hpp"

namespace stiefel::cli {
namespace {

StopSignals signals_of_run;
bool followed = false;  // a worker started this process: it passes signals on, and kills a run that must end at once
bool warns = true;      // whether this is the first rank

void stop_run(int number) {
  end_line_after_interrupt(number);
  signals_of_run.stop_by(number);
  if (signals_of_run.insisted && !followed) _exit(128 + number);
}
void save_run(int) { signals_of_run.save = true; }

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
  for (const int number : {SIGUSR1, SIGUSR2}) {
    if (on_save) sigaction(number, &action, nullptr);
    sigaddset(&listened, number);
  }
  sigprocmask(SIG_UNBLOCK, &listened, nullptr);
}

Registry found_plugins(const std::vector<std::filesystem::path>& extra) { return Registry(extra, print_warning); }

std::string option_of_script(const std::string& file) {
  return "file=" + yaml_text(Value(std::filesystem::absolute(file).string()));
}

std::vector<const Entry*> methods_of_script(const Registry& registry, const std::string& file) {
  std::vector<const Entry*> all, taken;
  for (const Role role : {Role::parametrisation, Role::task, Role::optimizer})
    all.push_back(&registry.find(role, "python"));
  std::ranges::copy_if(all, std::back_inserter(taken), [&](const Entry* entry) {
    return conformance::has_method(registry, *entry, {option_of_script(file)});
  });
  if (taken.empty()) all.resize(1);
  return taken.empty() ? all : taken;
}

void print_warning(const std::string& sentence) {
  if (warns) say("warning: {}\n", printable(sentence));
}

void end_line_after_interrupt(int number) {
  const int error = errno;
  if (number == SIGINT && isatty(STDERR_FILENO)) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, "\n", 1);
  }
  errno = error;
}

void follow_worker() {
  const char* worker = std::getenv("STIEFEL_PARENT");
  if (!worker) return;
  const long process = std::atol(worker);
  unsetenv("STIEFEL_PARENT");
  followed = true;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != process) _exit(128 + SIGTERM);  // the worker ended before prctl()
}

void demand_planned_run(const std::string& id, const std::string& file) {
  const char* planned = std::getenv("STIEFEL_RUN_ID");
  if (planned && id != planned)
    throw Error(
        fmt::format("{} describes the run {}, but it was planned as {}: the file or a plugin has changed; plan "
                    "the sweep again with `stiefel sweep run`",
                    file, id, planned));
}

void demand_readable_networks(const std::vector<DataFile>& files) {
  for (const DataFile& file : files)
    if (file.name == "model.init_file" && !has_right_sum(std::filesystem::canonical(file.path)))
      demand_readable(file.path);
}

RunOptions running_options(const Arguments& arguments, Ranks& ranks, const std::string& command,
                           std::span<const std::string> words) {
  catch_signals(stop_run, save_run);
  RunOptions options;
  options.ranks = &ranks;
  options.output = arguments.value("--output", "runs");
  options.data_directory = data_directory(arguments);
  options.check_data = demand_readable_networks;
  options.signal = &signals_of_run.stop;
  options.save = &signals_of_run.save;
  options.log = &log_of_run;
  options.until = whole_number(arguments, "--until", 0, 1, std::numeric_limits<Index>::max());
  options.command_line = {"stiefel", command};
  options.command_line.insert(options.command_line.end(), words.begin(), words.end());
  return options;
}

int report(const RunSummary& summary) {
  const bool diverged = summary.exit_code == int(Exit::diverged);
  const std::string state = summary.state == "preempted" ? "" : summary.state + ": ";
  if (!diverged) fmt::print("{}{}\n", state, printable_lines(summary.message));
  fmt::print("results: {}\n", RunFolder{summary.directory}.results().string());
  if (diverged) say("stiefel: {}\n", printable_lines(summary.message));
  return summary.exit_code;
}

int train_observed(const Arguments& arguments, const RunOptions& options,
                   const std::function<RunSummary(RunObserver&)>& work) {
  const bool first = options.ranks->first();
  if (const std::string slow = blas_warning(); !slow.empty()) print_warning(slow);
  const RunSummary summary = [&] {
    TerminalObserver observer(first ? choose_verbosity(arguments.has("--quiet"), !arguments.has("--no-progress"))
                                    : Verbosity::silent);
    return work(observer);
  }();
  return first ? report(summary) : summary.exit_code;
}

int with_ranks(const Arguments& arguments, const std::function<int(Ranks&)>& work) {
  const std::unique_ptr<Ranks> ranks = arguments.has("--mpi") ? mpi_ranks() : std::make_unique<Ranks>();
  warns = ranks->first();
  try {
    return work(*ranks);
  } catch (...) {
    if (ranks->count() == 1) throw;
    // Gives the first rank time to report the error: its abort ends the waiting ones by SIGTERM and, a second later,
    // SIGKILL.
    if (!ranks->first()) std::this_thread::sleep_for(std::chrono::seconds(3));
    const int code = tell_error();
    ranks->abort(code);  // the others would wait for this one
    return code;
  }
}

}  // namespace stiefel::cli
