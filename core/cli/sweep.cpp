// `stiefel sweep run|status|resume|retry|cancel|ask|tell`: many runs of one file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>
#include <thread>

#include "base/atomic_file.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/say.hpp"
#include "base/sha256.hpp"
#include "record/run_folder.hpp"
#include "results/analysis/comparison.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "sweep/halving.hpp"
#include "sweep/worker.hpp"

#include "cli/commands.hpp"
#include "cli/running.hpp"
#include "cli/sweep_check.hpp"
#include "cli/working.hpp"

namespace stiefel::cli {
namespace {

namespace fs = std::filesystem;

SweepFolder folder_of(const Arguments& arguments) {
  if (arguments.positional.size() != 2)
    throw Error(fmt::format("name the folder of one sweep: stiefel sweep {} DIR", arguments.positional.front()));
  return SweepFolder(arguments.positional[1]);
}

/// Reports runs of another plan. Their folders stay when the plan is changed, and commands that search the folder find
/// them too.
void tell_other_runs(const SweepFolder& folder) {
  if (const std::size_t others = folder.other_runs().size(); others > 0)
    say("{} has {} from another plan, which `stiefel compare` and `report` also show\n", folder.runs().string(),
        counted(others, "more run"));
}

/// Warns about finished runs whose plugins were rebuilt since; these runs are not repeated.
void warn_of_other_builds(const SweepFolder& folder, const std::vector<RunLook>& looks, const Registry& registry) {
  std::vector<fs::path> finished;
  for (std::size_t i = 0; i < looks.size(); ++i)
    if (looks[i].state == SweepState::finished) finished.push_back(folder.run(folder.sweep().runs[i]));
  if (finished.empty()) return;
  std::map<std::string, std::string> sums;  // by kind and name
  const auto sum_of = [&](const PluginRow& row) -> const std::string& {
    const auto [sum, first] = sums.try_emplace(row.kind + " " + (row.is_part() ? row.path : row.name));
    if (first && row.is_part() && fs::is_regular_file(row.path)) sum->second = sha256_of_file(row.path);
    for (const Role role : {Role::parametrisation, Role::cell, Role::task, Role::optimizer})
      if (first && row.kind == name_of(role) && std::ranges::count(registry.names(role), row.name) > 0)
        if (const fs::path file = registry.file_of(registry.find(role, row.name)).path; fs::is_regular_file(file))
          sum->second = sha256_of_file(file);
    return sum->second;
  };
  std::set<std::string> plugins;
  std::vector<std::string> runs;
  read_runs(finished, {.paths = {"/final"}}, [&](const RunData& run) {
    std::set<std::string> changed;
    for (const PluginRow& row : run.header.plugins)
      if (const std::string& sum = sum_of(row); !sum.empty() && sum != row.sha256) changed.insert(row.name);
    if (!changed.empty()) runs.push_back(run.path.string());
    plugins.merge(changed);
  });
  if (!runs.empty())
    print_warning(
        fmt::format("{} of the finished runs, such as {}, were made before {} changed; delete their "
                    "folders to train them again",
                    runs.size(), runs.front(), fmt::join(plugins, ", ")));
}

void forget_cancelling(const SweepFolder& folder) { fs::remove(folder.cancelled()); }

int plan_and_work(const Arguments& arguments, std::span<const std::string> words) {
  if (arguments.positional.size() < 2) throw Error("name the file: stiefel sweep run FILE [key.path=value...]");
  const std::string& file = arguments.positional[1];
  Registry registry = found_plugins();
  const bool shows = arguments.has("--dry-run");
  SweepCheck check(file, registry, arguments, std::chrono::seconds(10));
  auto sweep = load_sweep(file, {arguments.positional.begin() + 2, arguments.positional.end()}, registry,
                          shows ? SweepVisitor() : SweepVisitor(std::ref(check)));
  if (!sweep)
    throw Error(fmt::format("{} describes one run, so use `stiefel run`; a sweep needs seeds: or sweep:", file));
  if (sweep->combinations > sweep->runs.size())
    say("{} combinations of values give {}: some are equivalent\n", sweep->combinations,
        counted(sweep->runs.size(), "run"));
  if (const int code = check.finish(); code != int(Exit::done)) return code;
  if (const std::size_t kinds = check.left_off_after(); kinds > 0 && !arguments.has("--quiet"))
    say("{}: only {} kinds of runs were checked, in 10 s; `stiefel validate` checks for a minute\n", printable(file),
        kinds);
  if (shows) {
    fmt::print("id\t{}\n", fmt::join(sweep->keys, "\t"));
    for (const SweepRun& one : sweep->runs)
      fmt::print("{}\t{}\n", one.id, fmt::join(one.values | std::views::transform(printable), "\t"));
    return int(Exit::done);
  }
  const fs::path path = arguments.value("--output", (fs::path("sweeps") / sweep->name).string());
  keep_places(*sweep, arguments);
  write_sweep(path, *sweep, "stiefel sweep " + shell_line(words));
  const SweepFolder folder(path);
  forget_cancelling(folder);
  const std::vector<RunLook> looks = look_at_all(folder, by_file_time(worker_options(arguments).patience));
  if (!arguments.has("--quiet")) {
    tell_other_runs(folder);
    say("{}: {}\n", path.string(), summary(looks));
  }
  warn_of_other_builds(folder, looks, registry);
  if (arguments.has("--plan")) return int(Exit::done);
  return work(folder, arguments);
}

int resume(const Arguments& arguments) {
  const SweepFolder folder = folder_of(arguments);
  forget_cancelling(folder);
  return work(folder, arguments);
}

int retry(const Arguments& arguments) {
  if (!arguments.has("--failed")) throw Error("choose what to retry: stiefel sweep retry --failed DIR");
  const SweepFolder folder = folder_of(arguments);
  forget_failures(folder, folder.sweep().runs, by_file_time(worker_options(arguments).patience));
  forget_cancelling(folder);
  return work(folder, arguments);
}

int status(const Arguments& arguments) {
  const SweepFolder folder = folder_of(arguments);
  const std::vector<SweepRun>& runs = folder.sweep().runs;
  const std::vector<RunLook> looks = look_at_all(folder, by_file_time(worker_options(arguments).patience));
  if (!arguments.has("--json")) {
    std::vector<ProgressReader> readers;
    std::vector<const ProgressReader*> read;
    for (const SweepRun& run : runs) readers.emplace_back(folder.run(run)).update();
    for (const ProgressReader& reader : readers) read.push_back(&reader);
    // Halving leaves some of the waiting runs out.
    fmt::print("{}{}\n", summary(looks), folder.sweep().halving ? "" : time_left(read));
    if (const std::string why = Rungs(folder).why_none_continues(looks); !why.empty()) fmt::print("{}\n", why);
    for (std::size_t i = 0; i < runs.size(); ++i)
      fmt::print("{}  {:<8}  step {:<7}  {}{}\n", runs[i].id, name_of(looks[i].state), looks[i].step,
                 folder.values(runs[i]), looks[i].broke() ? ": " + looks[i].message : "");
    return int(Exit::done);
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    nlohmann::ordered_json values = nlohmann::ordered_json::object();
    for (std::size_t k = 0; k < folder.sweep().keys.size(); ++k)
      if (!runs[i].values[k].empty()) values[folder.sweep().keys[k]] = runs[i].values[k];
    json.push_back({{"id", runs[i].id},
                    {"folder", folder.run(runs[i]).string()},
                    {"values", values},
                    {"state", name_of(looks[i].state)},
                    {"step", looks[i].step},
                    {"message", looks[i].message}});
  }
  fmt::print("{}\n", json_text(json, 2));
  return int(Exit::done);
}

/// Makes a file that cancels the sweep, and waits until no run is in progress. Workers look for the file twice a
/// second; a run ends after its step, with a checkpoint.
int cancel(const Arguments& arguments) {
  const SweepFolder folder = folder_of(arguments);
  replace_file(folder.cancelled(), "");
  const auto seconds = worker_options(arguments).patience;
  const auto end = std::chrono::steady_clock::now() + seconds;
  const LockPatience patience = by_file_time(seconds);
  const auto at_work = [&] {
    for (const RunLook& look : look_at_all(folder, patience))
      if (look.state == SweepState::running) return true;
    return false;
  };
  while (at_work()) {
    if (std::chrono::steady_clock::now() > end)
      throw Error(fmt::format("some runs are still in progress; `stiefel sweep status {}` lists them",
                              shell_word(folder.path().string())),
                  Exit::in_use);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  fmt::print("{}; continue with `stiefel sweep resume {}`\n", summary(look_at_all(folder, patience)),
             shell_word(folder.path().string()));
  return int(Exit::done);
}

void print_line(const nlohmann::ordered_json& json) { fmt::print("{}\n", json_text(json)); }

/// Throws Error for a sweep with halving. With `ask` and `tell`, another program decides which runs continue.
void refuse_halving(const SweepFolder& folder) {
  if (folder.sweep().halving)
    throw Error(fmt::format("{} decides by halving which runs continue; use another folder (--output)",
                            folder.path().string()));
}

/// Adds a run to the sweep and prints it as JSON.
int ask(const Arguments& arguments) {
  if (arguments.positional.size() < 3)
    throw Error("name the file and the settings of the run: stiefel sweep ask FILE key.path=value...");
  const std::string& file = arguments.positional[1];
  const std::vector<std::string> settings(arguments.positional.begin() + 2, arguments.positional.end());
  Registry registry = found_plugins();
  const LoadedExperiment loaded = load_experiment(file, settings, registry);
  Sweep sweep;
  sweep.name = loaded.experiment.name;
  sweep.source = loaded.sources.front().text;
  sweep.runs = {{loaded.id, {}, loaded.resolved_yaml}};
  keep_places(sweep, arguments);
  nlohmann::ordered_json shown;
  Problems problems;
  for (const std::string& text : settings) {
    const Override setting = parse_override(text, problems).value();
    const std::string value = flow_text(setting.value);
    shown[setting.path] = value;
    sweep.keys.push_back(setting.path);
    sweep.runs.front().values.push_back(value);
  }
  const fs::path path = arguments.value("--output", (fs::path("sweeps") / sweep.name).string());
  if (fs::exists(path / "runs.tsv")) refuse_halving(SweepFolder(path));
  add_to_sweep(path, sweep, "stiefel sweep ask " + shell_word(file));
  const SweepFolder folder(path);
  forget_cancelling(folder);
  print_line({{"sweep", path.string()},
              {"run", loaded.id},
              {"path", folder.run(folder.find(loaded.id)).string()},
              {"settings", shown}});
  return int(Exit::done);
}

/// What a run has measured, as `tell` prints it.
nlohmann::ordered_json measured(const SweepFolder& folder, const SweepRun& run, const RunLook& look) {
  nlohmann::ordered_json json{{"run", run.id},
                              {"path", folder.run(run).string()},
                              {"step", look.step},
                              {"finished", look.state == SweepState::finished},
                              {"status", name_of(look.state)},
                              {"message", look.message},
                              {"metrics", nlohmann::ordered_json::object()},
                              {"evaluated", nullptr},
                              {"metric", nullptr},
                              {"better", nullptr},
                              {"objective", nullptr}};
  if (!fs::exists(RunFolder{folder.run(run)}.results())) return json;
  const RunData data = read_runs({folder.run(run)}, comparison_request()).front();
  for (const RunDataset& dataset : data.datasets)
    if (dataset.path.starts_with("/epochs/") && described_direction(dataset.description) != Better::unknown &&
        !dataset.values.empty() && std::isfinite(dataset.values.back()))
      json["metrics"][dataset.path.substr(dataset.path.rfind('/') + 1)] = dataset.values.back();
  if (const std::vector<double>& steps = data.column("/epochs/step"); !steps.empty())
    json["evaluated"] = Index(steps.back());
  const ComparedRun compared = compared_run(data, {});
  if (compared.metric.empty()) return json;
  json["metric"] = compared.metric;
  if (compared.better != Better::unknown) json["better"] = compared.better == Better::lower ? "lower" : "higher";
  if (look.state != SweepState::diverged) json["objective"] = compared.value;
  return json;
}

/// Trains one run and prints what it measured as JSON. A run that diverged counts as a result, not as an error.
int tell(const Arguments& arguments) {
  if (arguments.positional.size() != 3)
    throw Error("name the folder of a sweep and one of its runs: stiefel sweep tell DIR RUN [--until STEP]");
  const SweepFolder folder(arguments.positional[1]);
  const SweepRun& run = folder.find(arguments.positional[2]);
  refuse_halving(folder);
  WorkerOptions options = worker_options(arguments);
  options.only = run.id;
  const LockPatience patience = by_file_time(options.patience);
  forget_failures(folder, {run}, patience);
  const int code = do_runs(folder, options, arguments.has("--quiet"));
  print_line(measured(folder, run, look_at(folder, run, patience)));
  return code == int(Exit::diverged) ? int(Exit::done) : code;
}

}  // namespace

int sweep_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("sweep", words);
  const std::string what = arguments.positional.empty() ? "" : arguments.positional.front();
  if (what == "run") return plan_and_work(arguments, words);
  if (what == "resume") return resume(arguments);
  if (what == "retry") return retry(arguments);
  if (what == "status") return status(arguments);
  if (what == "cancel") return cancel(arguments);
  if (what == "ask") return ask(arguments);
  if (what == "tell") return tell(arguments);
  throw Error(
      "choose an action: stiefel sweep run or ask with a file, or status, resume, retry, cancel or tell with the "
      "folder of a sweep");
}

}  // namespace stiefel::cli
