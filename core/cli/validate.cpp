// `stiefel validate FILE [key.path=value...]`: checks an experiment and shows what would be run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "base/printable.hpp"
#include "base/say.hpp"
#include "config/load.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"
#include "cli/sweep_check.hpp"

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

/// Prints what was found in a sweep. Returns the exit code.
int finish(const std::string& file, const Sweep& sweep, const SweepCheck& check) {
  if (const std::size_t kinds = check.left_off_after(); kinds > 0)
    say("{}: only {} kinds of runs were checked, in a minute\n", printable(file), kinds);
  if (const int code = check.finish(); code != int(Exit::done)) return code;
  fmt::print("{}: valid{}, {}{}\n", printable(file),
             check.missing().empty() ? "" : " as far as can be checked without its data",
             counted(sweep.runs.size(), "run"),
             sweep.runs.size() > 1 ? fmt::format(" that differ in {}", fmt::join(sweep.keys, ", ")) : "");
  if (check.missing().empty()) return int(Exit::done);
  say("{}: cannot check it further: {}\n", printable(file), printable_lines(check.missing()));
  return int(Exit::data);
}

}  // namespace

int validate_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("validate", words);
  if (arguments.positional.empty()) throw Error("name the file: stiefel validate FILE [key.path=value...]");
  const std::string& file = arguments.positional.front();
  const std::vector<std::string> overrides(arguments.positional.begin() + 1, arguments.positional.end());
  Registry registry = found_plugins();
  SweepCheck check(file, registry, arguments, std::chrono::minutes(1));
  try {
    if (const std::optional<Sweep> sweep = load_sweep(file, overrides, registry, std::ref(check))) {
      for (const char* of_one : {"--resolved", "--origins"})
        if (arguments.has(of_one))
          throw Error(fmt::format(
              "{} describes {} runs, but {} shows only one: `stiefel sweep run --plan` writes them all to configs/",
              file, sweep->runs.size(), of_one));
      return finish(file, *sweep, check);
    }
    const LoadedExperiment loaded = load_experiment(file, overrides, registry);
    if (arguments.has("--resolved")) fmt::print("{}", loaded.resolved_yaml);
    if (arguments.has("--origins")) fmt::print("{}\n", fmt::join(loaded.origins, "\n"));
    if (arguments.has("--resolved") || arguments.has("--origins")) return int(Exit::done);
    const std::string missing = missing_data(loaded, registry, arguments);
    fmt::print("{}: valid{}\n{}", printable(file), missing.empty() ? "" : " as far as can be checked without its data",
               summary(loaded));
    if (missing.empty()) return int(Exit::done);
    say("{}: cannot check it further: {}\n", printable(file), printable_lines(missing));
    return int(Exit::data);
  } catch (const Error& error) {
    const auto* problems = dynamic_cast<const ConfigError*>(&error);
    say("{}\n", error.what());
    const std::size_t count = (problems ? problems->count() : 1) + check.tell_errors();
    say("{}: {}\n", printable(file), counted(count, "error"));
    return int(error.code());
  }
}

}  // namespace stiefel::cli
