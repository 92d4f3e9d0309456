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
#include <limits>
#include <memory>
#include <ranges>
#include <set>
#include <thread>
#include "base/number_from.hpp"
#include "base/printable.hpp"
#include "base/say.hpp"
#include "base/stop_signals.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "sdk/blas.hpp"
#include "training/changes.hpp"
#include "training/checkpoint.hpp"
#include "training/checkpoint_index.hpp"
#include "training/record_run.hpp"

#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/sudden_end.hpp"

namespace stiefel::cli {
namespace {

StopSignals signals_of_run;
bool followed = false;  // a worker passes signals on, and kills a run that is to end at once
bool warns = true;      // only the first of the ranks

void stop_run(int number) {
  end_line_after_interrupt(number);
  signals_of_run.stop_by(number);
  if (signals_of_run.insisted && !followed) _exit(128 + number);
}
void save_run(int) { signals_of_run.save = true; }

/// Whether a word such as task.test=other.csv or task={train: {file: a.npy}} names a file, or a folder above it.
bool names_file(const std::string& word, const std::filesystem::path& path) {
  const std::string value = word.substr(std::min(word.find('='), word.size() - 1) + 1), whole = path.string() + "/";
  return !value.empty() && (whole.find("/" + value + "/") != whole.npos || whole == value + "/" ||
                            value.find(path.filename().string()) != value.npos);
}

std::string step_name(Index step) { return std::filesystem::path(step_file(step)).stem().string(); }

/// The step in step_00000020.h5, step_20 or 20.
std::optional<Index> step_of(std::string_view name) {
  if (name.ends_with(".h5")) name.remove_suffix(3);
  if (name.starts_with("step_")) name.remove_prefix(5);
  return number_from<Index>(name);
}

/// The file of a network; throws Error with the options for those of the run if it is not there.
std::filesystem::path existing_network(const std::filesystem::path& run, const std::string& which) {
  const std::filesystem::path path = network_path(run, which);
  if (exists(path)) return path;
  std::set<Index> steps;
  if (is_directory(path.parent_path()))
    for (const auto& entry : std::filesystem::directory_iterator(path.parent_path()))
      if (const std::optional<Index> step = step_of(entry.path().filename().string())) steps.insert(*step);
  std::vector<std::string> options;
  if (exists(network_path(run, "last"))) options.emplace_back("--last");
  for (const Index step : steps) options.push_back(fmt::format("--step {}", step));
  if (exists(network_path(run, "best"))) options.emplace_back("no option for the best network");
  throw Error(fmt::format(
      "{}; {}",
      which == "best" ? "the run has no best network: no evaluation has selected one yet"
                      : fmt::format("there is no {}", path.string()),
      options.empty() ? "the run has not saved a network yet" : fmt::format("use {}", fmt::join(options, ", or "))));
}

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

void print_warning(const std::string& sentence) {
  if (warns) say("warning: {}\n", printable(sentence));
}

std::filesystem::path named_run(const Arguments& arguments, const std::string& usage, bool settings) {
  std::vector<std::string> named;
  for (const std::string& word : arguments.positional)
    if (named.empty() || std::filesystem::is_directory(word))
      named.push_back(word);
    else if (!settings || word.find('=') == word.npos)
      throw Error(usage);
  if (named.empty()) throw Error(usage);
  return find_run(named);
}

std::filesystem::path run_folder(const Arguments& arguments, const std::string& usage, bool settings) {
  const std::filesystem::path run = named_run(arguments, usage, settings);
  if (!exists(run / "config.yaml"))
    throw Error(fmt::format("{} is not a run folder: it has no config.yaml; runs are in runs/NAME/ID", run.string()));
  return run;
}

void warn_of_rebuilt_plugins(const RunData& made, const LoadedExperiment& loaded, const Registry& registry) {
  if (!made.unreadable.empty() || made.header.plugins.empty()) return;
  RunHeader now;
  now.yaml = loaded.resolved_yaml;
  now.plugins = plugins_of(loaded.experiment, registry);
  for (const Change& change : changes(made.header, now))
    for (const PluginRow& plugin : now.plugins)
      if (change.was && change.is &&
          (change.name == "plugin:" + plugin.name || change.name == "plugin:" + plugin.kind + " " + plugin.name))
        print_warning(fmt::format("the plugin {}, {}, has been rebuilt since {} was made; results may differ",
                                  plugin.name, plugin.path, made.path.string()));
}

std::filesystem::path chosen_network(const std::filesystem::path& run, const Arguments& arguments) {
  if (arguments.has("--last") && arguments.has("--step")) throw Error("choose one of --last and --step");
  demand_whole(run, "config.yaml");
  if (!arguments.has("--step")) return existing_network(run, arguments.has("--last") ? "last" : "best");
  const std::string given = arguments.value("--step");
  const std::optional<Index> step = step_of(given);
  if (!step || *step < 0)
    throw Error(
        fmt::format("--step must be the step of a checkpoint, got '{}'; without it, the network is the best "
                    "one, and with --last the last one",
                    given));
  return existing_network(run, step_name(*step));
}

bool changes_task(const Arguments& arguments) {
  return std::ranges::any_of(arguments.positional | std::views::drop(1), [](const std::string& word) {
    return word.starts_with("task.") || word.starts_with("task=");
  });
}

void look_where_it_was_started(const std::filesystem::path& run, const Arguments& arguments, RunOptions& options) {
  const auto can_enter = [](const std::filesystem::path& folder) {
    std::error_code fault;
    return is_directory(folder, fault) && access(folder.c_str(), X_OK) == 0;
  };
  const StartedIn started = started_in(run);
  const bool data_there = !arguments.has("--data") && can_enter(started.data_directory);
  const std::filesystem::path data = data_there ? started.data_directory.string() : data_directory(arguments);
  if (!data.empty()) options.data_directory = absolute(data);
  if (!changes_task(arguments) && can_enter(started.working_directory))
    options.working_directory = started.working_directory;
}

void demand_same_data(const RunData& made, const LoadedExperiment& loaded, const Arguments& arguments,
                      RunOptions& options) {
  if (!made.unreadable.empty()) {
    options.check_data = [run = made.path](const std::vector<DataFile>& files) {
      if (!files.empty())
        print_warning(
            fmt::format("the results of {} cannot be read, so the data files may have changed since", run.string()));
    };
    return;
  }
  if (made.header.datasets.empty()) return;
  const auto words = arguments.positional | std::views::drop(1);
  options.check_data = [run = made.path, before = made.header, yaml = loaded.resolved_yaml,
                        other = changes_task(arguments), words = std::vector<std::string>(words.begin(), words.end())](
                           const std::vector<DataFile>& files) {
    RunHeader now;
    now.yaml = yaml;
    now.datasets = datasets_of(files);
    const auto named_now = [&](const std::string& name) {
      return std::ranges::any_of(now.datasets, [&](const DatasetRow& row) {
        return row.name == name &&
               std::ranges::any_of(words, [&](const std::string& word) { return names_file(word, row.path); });
      });
    };
    for (const Change& change : changes_of_data(before, now)) {
      const std::string name = change.name.substr(change.name.find(':') + 1);
      if (name.starts_with("model.") && !change.is) continue;  // initial values, which a trained network does not need
      const bool both = change.was && change.is;
      if (other && (!both || named_now(name))) continue;
      throw Error(
          fmt::format("the data file {} {} since {} was made, so normalization or names of classes may differ; restore "
                      "the file, or train again",
                      name,
                      both        ? "has changed"
                      : change.is ? "has been added"
                                  : "is missing",
                      run.string()),
          Exit::data);
    }
  };
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
  if (getppid() != process) _exit(128 + SIGTERM);  // it was gone before that
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
  if (ranks.first()) options.check_data = demand_readable_networks;
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
  fmt::print("results: {}\n", (summary.directory / "results.h5").string());
  if (diverged) say("stiefel: {}\n", printable_lines(summary.message));
  return summary.exit_code;
}

int train(const Arguments& arguments, const RunOptions& options, const std::function<RunSummary(RunObserver&)>& work) {
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
    // The abort of the first ends the others while they wait: SIGKILL comes a second after SIGTERM.
    if (!ranks->first()) std::this_thread::sleep_for(std::chrono::seconds(3));
    const int code = tell_error();
    ranks->abort(code);  // the others would wait for this one
    return code;
  }
}

}  // namespace stiefel::cli
