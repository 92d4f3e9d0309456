#include "cli/opened_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <ranges>
#include <set>

#include "base/number_from.hpp"
#include "record/run_folder.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "training/changes.hpp"
#include "training/checkpoint.hpp"
#include "training/checkpoint_index.hpp"
#include "training/run_record.hpp"

#include "cli/commands.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {
namespace {

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

/// The file of a network. If it is not there, throws Error with the options for the networks that the run has.
std::filesystem::path existing_network(const std::filesystem::path& run, const std::string& which) {
  const std::filesystem::path path = RunFolder{run}.network(which);
  if (exists(path)) return path;
  std::set<Index> steps;
  if (is_directory(path.parent_path()))
    for (const auto& entry : std::filesystem::directory_iterator(path.parent_path()))
      if (const std::optional<Index> step = step_of(entry.path().filename().string())) steps.insert(*step);
  std::vector<std::string> options;
  if (exists(RunFolder{run}.network("last"))) options.emplace_back("--last");
  for (const Index step : steps) options.push_back(fmt::format("--step {}", step));
  if (exists(RunFolder{run}.network("best"))) options.emplace_back("no option for the best network");
  throw Error(fmt::format(
      "{}; {}",
      which == "best" ? "the run has no best network: no evaluation has selected one yet"
                      : fmt::format("there is no {}", path.string()),
      options.empty() ? "the run has not saved a network yet" : fmt::format("use {}", fmt::join(options, ", or "))));
}

/// Warns about each plugin whose file has changed since the run was made.
void warn_of_rebuilt_plugins(const RunData& made, const LoadedExperiment& loaded, const Registry& registry) {
  if (!made.unreadable.empty() || made.header.plugins.empty()) return;
  RunHeader now;
  now.yaml = loaded.resolved_yaml;
  now.plugins = plugins_of(loaded.experiment, registry);
  for (const Change& change : changes(made.header, now))
    for (const PluginRow& plugin : now.plugins)
      if (change.was && change.is &&
          (change.name == "plugin:" + plugin.name || change.name == "plugin:" + plugin.kind + " " + plugin.name))
        print_warning(fmt::format("the plugin {}, {}, has {} since {} was made; results may differ", plugin.name,
                                  plugin.path, plugin.is_part() ? "changed" : "been rebuilt", made.path.string()));
}

/// A function that throws Error (Exit::data) if data have changed since the run was made: the network might read its
/// inputs or name its classes differently. It only warns if the network `keeps` names and scales, or if the run's
/// results cannot be read. Keys of the task that are given now may name other files. Null if the run has no data.
std::function<void(const std::vector<DataFile>&)> check_of_data(const RunData& made, const LoadedExperiment& loaded,
                                                                const Arguments& arguments, bool keeps) {
  if (!made.unreadable.empty())
    return [run = made.path](const std::vector<DataFile>& files) {
      if (!files.empty())
        print_warning(
            fmt::format("the results of {} cannot be read, so the data files may have changed since", run.string()));
    };
  if (made.header.datasets.empty()) return nullptr;
  const auto words = arguments.positional | std::views::drop(1);
  return [run = made.path, before = made.header, yaml = loaded.resolved_yaml, other = changes_task(arguments),
          words = std::vector<std::string>(words.begin(), words.end()), keeps](const std::vector<DataFile>& files) {
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
      const std::string fault = fmt::format("the data file {} {} since {} was made", name,
                                            both        ? "has changed"
                                            : change.is ? "has been added"
                                                        : "is missing",
                                            run.string());
      if (!keeps)
        throw Error(fault + ", so normalization or names of classes may differ; restore the file, or train again",
                    Exit::data);
      print_warning(fault + "; the network keeps the names and scales of its training");
    }
  };
}

LoadedExperiment load_run(const std::filesystem::path& folder, const std::vector<std::string>& overrides,
                          Registry& registry) {
  if (has_checkpoint_index(folder)) demand_whole(folder, "config.yaml");
  return load_experiment(RunFolder{folder}.config(), overrides, registry);
}

}  // namespace

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
  if (!exists(RunFolder{run}.config()))
    throw Error(fmt::format("{} is not a run folder: it has no config.yaml; runs are in runs/NAME/ID", run.string()));
  return run;
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

Split chosen_split(const Arguments& arguments) {
  const std::string name = arguments.value("--split", "test");
  for (const Split split : {Split::train, Split::validation, Split::test})
    if (name == name_of(split)) return split;
  throw Error(fmt::format("--split must be train, validation or test, got '{}'", name));
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

LoadedRun::LoadedRun(const std::filesystem::path& run, const Arguments& arguments,
                     const std::vector<std::string>& overrides, RunOptions with)
    : folder(run), registry(found_plugins()), loaded(load_run(run, overrides, registry)), options(std::move(with)) {
  look_where_it_was_started(folder, arguments, options);
}

OpenedRun::OpenedRun(const std::filesystem::path& run, const Arguments& arguments,
                     const std::vector<std::string>& overrides, RunOptions with)
    : LoadedRun(run, arguments, overrides, std::move(with)), made(read_runs({folder}, {}).at(0)) {
  warn_of_rebuilt_plugins(made, loaded, registry);
  if (auto check = check_of_data(made, loaded, arguments, options.trained != nullptr))
    options.check_data = std::move(check);
}

}  // namespace stiefel::cli
