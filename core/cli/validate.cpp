// `stiefel validate FILE [key.path=value...]`: is the experiment in order, and what would be run.
#include <fmt/format.h>

#include <algorithm>
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
#include "training/dry_run.hpp"

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

/// The missing data that prevent a full check; empty if there are none.
std::string missing_data(const LoadedExperiment& loaded, Registry& registry, const Arguments& arguments,
                         const std::function<void(const std::string&)>& warn = print_warning) {
  RunOptions options;
  options.data_directory = data_directory(arguments);
  options.check_data = demand_readable_networks;
  try {
    for (const std::string& remark : check_experiment(loaded, registry, options)) warn(remark);
  } catch (const Error& error) {
    if (!error.is_missing()) throw;
    return error.what();
  }
  return {};
}

/// Whether each run of a sweep fits together, for at most a minute; of runs that differ in the seed alone one.
class SweepCheck {
 public:
  SweepCheck(std::string file, Registry& registry, const Arguments& arguments)
      : file_(std::move(file)), registry_(registry), arguments_(arguments) {}

  void operator()(const LoadedExperiment& loaded, const SweepRun& run, const Sweep& sweep) {
    const std::string values = assignments(sweep, run, "seed"), which = values.empty() ? "" : " (with " + values + ")";
    if (!in_time() || !checked_.insert(values).second) return;
    try {
      const std::string missing = missing_data(loaded, registry_, arguments_, [&](const std::string& remark) {
        if (said_.insert(remark).second) print_warning(remark);
      });
      if (missing_.empty() && !missing.empty()) missing_ = missing + which;
    } catch (const Error& error) {
      const std::string sentence = error.what();
      const bool placed = std::ranges::any_of(
          loaded.sources, [&](const SourceFile& source) { return sentence.starts_with(source.path + ":"); });
      errors_ += printable_lines((placed ? "" : file_ + ": ") + sentence + which) + "\n";
      if (count_++ == 0) code_ = int(error.code());
    }
  }

  /// Prints the errors that were found; returns how many.
  std::size_t tell_errors() const {
    say("{}", errors_);
    return count_;
  }

  /// Prints what was found; returns the exit code.
  int finish(const Sweep& sweep) const {
    const std::string file = printable(file_);
    if (!in_time()) say("{}: only {} kinds of runs were checked, in a minute\n", file, checked_.size());
    if (count_ > 0) {
      say("{}{}: {}\n", errors_, file, counted(count_, "error"));
      return code_;
    }
    fmt::print("{}: valid{}, {}{}\n", file, missing_.empty() ? "" : " as far as can be checked without its data",
               counted(sweep.runs.size(), "run"),
               sweep.runs.size() > 1 ? fmt::format(" that differ in {}", fmt::join(sweep.keys, ", ")) : "");
    if (missing_.empty()) return int(Exit::done);
    say("{}: cannot check it further: {}\n", file, printable_lines(missing_));
    return int(Exit::data);
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool in_time() const { return Clock::now() < end_; }

  std::string file_;
  Registry& registry_;
  const Arguments& arguments_;
  Clock::time_point end_ = Clock::now() + std::chrono::minutes(1);
  std::set<std::string> checked_, said_;
  std::string missing_, errors_;
  std::size_t count_ = 0;
  int code_ = int(Exit::done);
};

}  // namespace

int validate_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("validate", words);
  if (arguments.positional.empty()) throw Error("name the file: stiefel validate FILE [key.path=value...]");
  const std::string& file = arguments.positional.front();
  const std::vector<std::string> overrides(arguments.positional.begin() + 1, arguments.positional.end());
  Registry registry = found_plugins();
  SweepCheck check(file, registry, arguments);
  try {
    if (const std::optional<Sweep> sweep = load_sweep(file, overrides, registry, std::ref(check))) {
      for (const char* of_one : {"--resolved", "--origins"})
        if (arguments.has(of_one))
          throw Error(fmt::format(
              "{} describes {} runs, but {} shows only one: `stiefel sweep run --plan` writes them all to configs/",
              file, sweep->runs.size(), of_one));
      return check.finish(*sweep);
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
