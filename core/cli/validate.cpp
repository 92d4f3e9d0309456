// `stiefel validate FILE [key.path=value...]`: is the experiment in order, and what would be run.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "base/printable.hpp"
#include "base/say.hpp"
#include "config/load.hpp"
#include "sweep/sweep.hpp"
#include "training/trainer.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {
namespace {

std::string summary(const LoadedExperiment& loaded) {
  const Experiment& e = loaded.experiment;
  std::vector<std::string> cells, maps;
  for (const LayerOptions& layer : e.model.layers) {
    if (layer.path == "model" && !cells.empty()) break;
    cells.push_back(fmt::format("{}, {} hidden units", layer.cell.plugin, layer.hidden));
    if (layer.recurrent.entry) maps.push_back(layer.recurrent.plugin);
    for (const RecurrentMap& map : layer.maps) maps.push_back(fmt::format("{}: {}", map.name, map.plugin));
  }
  const std::size_t layers = e.model.layers.size();
  const std::string depth = layers == 1 ? "" : fmt::format(", {} layers", layers);
  std::string optimizers;
  for (const OptimizerGroup& group : e.optimizer) {
    optimizers += (optimizers.empty() ? "" : "; ") + group.plugin;
    if (!group.frozen) optimizers += fmt::format(" rate {}", group.rate);
    if (e.optimizer.size() > 1) optimizers += fmt::format(" for {}", group.blocks);
  }
  const std::string length = e.train.steps > 0 ? counted(e.train.steps, "step") : counted(e.train.epochs, "epoch");
  const auto line = [](const char* key, const std::string& value) { return fmt::format("  {:<11}{}\n", key, value); };
  return line("run", fmt::format("{}/{}", e.name, loaded.id)) + line("task", e.task.plugin) +
         line("cell", fmt::format("{}{}, {}", fmt::join(cells, "; "), depth, e.scalar)) +
         line("recurrent", maps.empty() ? "none" : fmt::format("{}", fmt::join(maps, ", "))) +
         line("optimizer", optimizers) +
         line("training", fmt::format("{}, batches of {}, seed {}", length, e.train.batch, e.seed));
}

/// Why it cannot be seen whether all fits, when that is because of the data.
std::string fault_of_data(const LoadedExperiment& loaded, Registry& registry, const Arguments& arguments,
                          const std::function<void(const std::string&)>& warn = print_warning) {
  RunOptions options;
  options.data_directory = data_directory(arguments);
  try {
    for (const std::string& remark : check_experiment(loaded, registry, options)) warn(remark);
  } catch (const Error& error) {
    if (error.code() != Exit::data) throw;
    return error.what();
  }
  return {};
}

/// "key=value, key=value" of a run, without its seed.
std::string values_of(const SweepRun& run, const Sweep& sweep) {
  std::string text;
  for (std::size_t i = 0; i < sweep.keys.size(); ++i)
    if (sweep.keys[i] != "seed" && !run.values[i].empty())
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", sweep.keys[i], run.values[i]);
  return text;
}

/// Whether each run fits together, for at most a minute; of runs that differ in the seed alone one. Returns the exit
/// code.
int validate_runs(const Sweep& sweep, const std::string& file, Registry& registry, const Arguments& arguments) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::set<std::string> checked, said;
  std::string fault;
  int errors = 0, code = int(Exit::done);
  for (const SweepRun& run : sweep.runs) {
    const std::string values = values_of(run, sweep), which = values.empty() ? "" : "with " + values + ": ";
    if (!checked.insert(values).second) continue;
    try {
      const LoadedExperiment loaded = load_experiment_text(run.yaml, "", {}, registry);
      const std::string found = fault_of_data(loaded, registry, arguments, [&](const std::string& remark) {
        if (said.insert(remark).second) print_warning(which + remark);
      });
      if (fault.empty() && !found.empty()) fault = which + found;
    } catch (const Error& error) {
      std::string_view sentence = error.what();
      if (constexpr std::string_view nowhere = "command line: "; sentence.starts_with(nowhere))
        sentence.remove_prefix(nowhere.size());  // the resolved configuration of a run is in no file
      say("{}: {}{}\n", printable(file), printable(which), sentence);
      if (errors++ == 0) code = int(error.code());
    }
    if (std::chrono::steady_clock::now() > end) {
      say("{}: only {} kinds of runs were checked, in a minute\n", printable(file), checked.size());
      break;
    }
  }
  if (errors > 0) {
    say("{}: {}\n", printable(file), counted(errors, "error"));
    return code;
  }
  fmt::print("{}: valid{}, {}{}\n", printable(file), fault.empty() ? "" : " as far as can be checked without its data",
             counted(sweep.runs.size(), "run"),
             sweep.runs.size() > 1 ? fmt::format(" that differ in {}", fmt::join(sweep.keys, ", ")) : "");
  if (fault.empty()) return int(Exit::done);
  say("{}: cannot check it further: {}\n", printable(file), printable_lines(fault));
  return int(Exit::data);
}

}  // namespace

int validate_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("validate", words);
  if (arguments.positional.empty()) throw Error("name the file: stiefel validate FILE [key.path=value...]");
  const std::string& file = arguments.positional.front();
  const std::vector<std::string> overrides(arguments.positional.begin() + 1, arguments.positional.end());
  Registry registry = found_plugins();
  try {
    if (const std::optional<Sweep> sweep = load_sweep(file, overrides, registry)) {
      for (const char* of_one : {"--resolved", "--origins"})
        if (arguments.has(of_one))
          throw Error(fmt::format(
              "{} describes {} runs, but {} shows only one: `stiefel sweep run --plan` writes them all to configs/",
              file, sweep->runs.size(), of_one));
      return validate_runs(*sweep, file, registry, arguments);
    }
    const LoadedExperiment loaded = load_experiment(file, overrides, registry);
    if (arguments.has("--resolved")) fmt::print("{}", loaded.resolved_yaml);
    if (arguments.has("--origins")) fmt::print("{}\n", fmt::join(loaded.origins, "\n"));
    if (arguments.has("--resolved") || arguments.has("--origins")) return int(Exit::done);
    const std::string fault = fault_of_data(loaded, registry, arguments);
    fmt::print("{}: valid{}\n{}", printable(file), fault.empty() ? "" : " as far as can be checked without its data",
               summary(loaded));
    if (fault.empty()) return int(Exit::done);
    say("{}: cannot check it further: {}\n", printable(file), printable_lines(fault));
    return int(Exit::data);
  } catch (const Error& error) {
    const auto* problems = dynamic_cast<const ConfigError*>(&error);
    const std::size_t count = problems ? problems->count() : 1;
    say("{}\n{}: {}\n", error.what(), printable(file), counted(count, "error"));
    return int(error.code());
  }
}

}  // namespace stiefel::cli
