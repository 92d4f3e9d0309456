#include "cli/working.hpp"

#include <fmt/format.h>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/printable.hpp"
#include "base/say.hpp"
#include "record/run_folder.hpp"

#include "cli/running.hpp"

namespace stiefel::cli {
namespace {

StopSignals signals;

void stop_worker(int number) {
  end_line_after_interrupt(number);
  signals.stop_by(number);
}
void save_all_runs(int) { signals.save = true; }

}  // namespace

WorkerOptions worker_options(const Arguments& arguments) {
  WorkerOptions options;
  options.jobs = int(whole_number(arguments, "--jobs", 1));
  options.threads = int(whole_number(arguments, "--threads", 0, 0, 1024));
  options.patience = std::chrono::seconds(whole_number(arguments, "--patience", usual_patience.count()));
  options.fail_fast = arguments.has("--fail-fast");
  options.only = arguments.value("--run");
  options.until = whole_number(arguments, "--until", 0, 1, std::numeric_limits<Index>::max());
  options.data_directory = arguments.value("--data");
  return options;
}

void forget_failures(const SweepFolder& folder, const std::vector<SweepRun>& runs, const LockPatience& patience) {
  for (const SweepRun& run : runs)
    if (look_at(folder, run, patience).state == SweepState::failed) forget_failure(folder, run);
}

void warn_of_failures(const std::vector<std::string>& folders) {
  namespace fs = std::filesystem;
  for (const fs::path folder : folders) {
    if (!fs::is_directory(folder / "failed") || !fs::is_directory(folder / "runs")) continue;
    std::set<fs::path> failed, with_results;
    for (const auto& file : fs::directory_iterator(folder / "failed")) failed.insert(file.path().stem());
    for (const auto& name : fs::directory_iterator(folder / "runs"))
      if (name.is_directory())
        for (const auto& run : fs::directory_iterator(name))
          if (fs::exists(RunFolder{run.path()}.results())) with_results.insert(run.path().filename());
    std::erase_if(failed, [&](const fs::path& id) { return with_results.contains(id); });
    if (!failed.empty())
      print_warning(fmt::format("{} of {} failed without results; `stiefel sweep status {}` says why",
                                counted(failed.size(), "run"), folder.string(), shell_word(folder.string())));
  }
}

void keep_places(Sweep& sweep, const Arguments& arguments) {
  sweep.working_directory = std::filesystem::current_path();
  if (arguments.has("--data")) sweep.data_directory = std::filesystem::absolute(arguments.value("--data"));
}

std::string summary(const std::vector<RunLook>& looks) {
  std::map<SweepState, int> counts;
  for (const RunLook& look : looks) ++counts[look.state];
  std::string text = counted(looks.size(), "run") + ":";
  for (const SweepState state : {SweepState::finished, SweepState::running, SweepState::stopped, SweepState::waiting,
                                 SweepState::at_rung, SweepState::left_out, SweepState::diverged, SweepState::failed})
    if (counts[state] > 0)
      text += fmt::format("{} {} {}", text.back() == ':' ? "" : ",", counts[state], name_of(state));
  return text;
}

std::string time_left(std::span<const ProgressReader* const> runs) {
  const double seconds = seconds_left(runs);
  return std::isfinite(seconds) ? fmt::format(", about {} left", duration_text(seconds)) : "";
}

int do_runs(const SweepFolder& folder, const WorkerOptions& options, bool quiet) {
  if (std::filesystem::exists(folder.cancelled()))
    throw Error(fmt::format("{} was canceled; continue it with `stiefel sweep resume {}`", folder.path().string(),
                            shell_word(folder.path().string())),
                Exit::preempted);
  catch_signals(stop_worker, save_all_runs);
  return work_on(folder, options, signals, [quiet](const std::string& line) {
    if (!quiet) say("{}\n", line);
  });
}

int work(const SweepFolder& folder, const Arguments& arguments) {
  const WorkerOptions options = worker_options(arguments);
  const int code = do_runs(folder, options, arguments.has("--quiet"));
  if (!options.only.empty()) return code;
  const std::vector<RunLook> looks = look_at_all(folder, by_file_time(options.patience));
  fmt::print("{}\n", summary(looks));
  for (std::size_t i = 0; i < looks.size(); ++i)
    if (looks[i].broke())
      fmt::print("{}: {} ({}): {}\n", name_of(looks[i].state), folder.sweep().runs[i].id,
                 folder.values(folder.sweep().runs[i]), looks[i].message);
  return code;
}

}  // namespace stiefel::cli
