// `stiefel validate FILE [key.path=value...]`: is the experiment in order, and what would be run.
#include <fmt/format.h>

#include <cstdio>

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
  const std::string length =
      e.train.steps > 0 ? fmt::format("{} steps", e.train.steps) : fmt::format("{} epochs", e.train.epochs);
  const auto line = [](const char* key, const std::string& value) { return fmt::format("  {:<11}{}\n", key, value); };
  return line("run", fmt::format("{}/{}", e.name, loaded.id)) + line("task", e.task.plugin) +
         line("cell", fmt::format("{}{}, {}", fmt::join(cells, "; "), depth, e.scalar)) +
         line("recurrent", maps.empty() ? "none" : fmt::format("{}", fmt::join(maps, ", "))) +
         line("optimizer", optimizers) +
         line("training", fmt::format("{}, batches of {}, seed {}", length, e.train.batch, e.seed));
}

/// Why it cannot be seen whether all fits, when that is because of the data.
std::string fault_of_data(const LoadedExperiment& loaded, Registry& registry, const Arguments& arguments) {
  RunOptions options;
  options.data_directory = data_directory(arguments);
  try {
    for (const std::string& remark : check_experiment(loaded, registry, options)) print_warning(remark);
  } catch (const Error& error) {
    if (error.code() != Exit::data) throw;
    return error.what();
  }
  return {};
}

}  // namespace

int validate_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("validate", words);
  if (arguments.positional.empty()) throw Error("name the file: stiefel validate FILE [key.path=value...]");
  const std::string& file = arguments.positional.front();
  const std::vector<std::string> overrides(arguments.positional.begin() + 1, arguments.positional.end());
  Registry registry = found_plugins();
  bool loads = false;
  try {
    if (const std::optional<Sweep> sweep = load_sweep(file, overrides, registry)) {
      for (const char* of_one : {"--resolved", "--origins"})
        if (arguments.has(of_one))
          throw Error(fmt::format(
              "{} describes {} runs, but {} shows only one: `stiefel sweep run --plan` writes them all to configs/",
              file, sweep->runs.size(), of_one));
      fmt::print("{}: valid, {} runs that differ in {}\n", file, sweep->runs.size(), fmt::join(sweep->keys, ", "));
      return int(Exit::done);
    }
    const LoadedExperiment loaded = load_experiment(file, overrides, registry);
    if (arguments.has("--resolved")) fmt::print("{}", loaded.resolved_yaml);
    if (arguments.has("--origins")) fmt::print("{}\n", fmt::join(loaded.origins, "\n"));
    if (arguments.has("--resolved") || arguments.has("--origins")) return int(Exit::done);
    loads = true;
    const std::string fault = fault_of_data(loaded, registry, arguments);
    fmt::print("{}: valid{}\n{}", printable(file), fault.empty() ? "" : " as far as can be checked without its data",
               summary(loaded));
    if (fault.empty()) return int(Exit::done);
    say("{}: cannot check it further: {}\n", printable(file), printable_lines(fault));
    return int(Exit::data);
  } catch (const Error& error) {
    const auto* problems = dynamic_cast<const ConfigError*>(&error);
    const std::size_t count = problems ? problems->count() : 1;
    say("{}\n{}: {} {}\n", error.what(), printable(file), count, count == 1 ? "error" : "errors");
    return loads ? int(error.code()) : int(Exit::usage);
  }
}

}  // namespace stiefel::cli
