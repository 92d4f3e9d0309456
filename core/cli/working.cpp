#include "working.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <map>

namespace stiefel::cli {
namespace {

WorkerSignals signals;

void on_stop(int number) {
  signals.stop = number;
  ++signals.stops;
}
void on_save(int) { signals.save = true; }

void catch_signals() {
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = on_stop;
  for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
  action.sa_handler = on_save;
  sigaction(SIGUSR1, &action, nullptr);
}

}  // namespace

WorkerOptions worker_options(const Arguments& arguments) {
  WorkerOptions options;
  options.jobs = int(whole_number(arguments, "--jobs", 1));
  options.threads = int(whole_number(arguments, "--threads", 0));
  options.patience = std::chrono::seconds(whole_number(arguments, "--patience", 60));
  options.fail_fast = arguments.has("--fail-fast");
  options.only = arguments.value("--run");
  options.data_directory = arguments.value("--data");
  return options;
}

std::string summary(const std::vector<RunLook>& looks) {
  std::map<SweepState, int> counts;
  for (const RunLook& look : looks) ++counts[look.state];
  std::string text = fmt::format("{} {}:", looks.size(), looks.size() == 1 ? "run" : "runs");
  for (const SweepState state :
       {SweepState::finished, SweepState::running, SweepState::stopped, SweepState::waiting, SweepState::left_out, SweepState::failed})
    if (counts[state] > 0) text += fmt::format("{} {} {}", text.back() == ':' ? "" : ",", counts[state], name_of(state));
  return text;
}

int work(const SweepFolder& folder, const Arguments& arguments) {
  const WorkerOptions options = worker_options(arguments);
  if (std::filesystem::exists(folder.cancelled()))
    throw Error(fmt::format("{0} was cancelled; `stiefel sweep resume {0}` goes on with it", folder.path().string()), Exit::preempted);
  catch_signals();
  const bool quiet = arguments.has("--quiet");
  const int code = work_on(folder, options, signals, [quiet](const std::string& line) {
    if (!quiet) fmt::print(stderr, "{}\n", line);
  });
  const std::vector<RunLook> looks = look_at_all(folder, options.patience);
  fmt::print("{}\n", summary(looks));
  for (std::size_t i = 0; i < looks.size(); ++i)
    if (looks[i].state == SweepState::failed)
      fmt::print("failed: {} ({}): {}\n", folder.sweep().runs[i].id, folder.values(folder.sweep().runs[i]), looks[i].message);
  return code;
}

}  // namespace stiefel::cli
