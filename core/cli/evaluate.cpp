// `stiefel evaluate RUN [key.path=value...]`: how good a trained network is on a test set.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.hpp"
#include "base/printable.hpp"
#include "base/sha256.hpp"
#include "config/resolved.hpp"
#include "record/run_folder.hpp"
#include "training/changes.hpp"
#include "training/checkpoint.hpp"
#include "training/evaluate_network.hpp"
#include "training/trained.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/opened_run.hpp"

namespace stiefel::cli {
namespace {

void refuse_other_keys(std::span<const std::string> overrides) {
  for (const std::string& override : overrides) {
    if (!override.starts_with("task.") && !override.starts_with("train.batch=") && !override.starts_with("seed=") &&
        !override.starts_with("threads=") && !override.starts_with("plugins="))
      throw Error(
          fmt::format("'{}' would change the network or its training, which are those of the run; only task.*, "
                      "train.batch, seed, threads and plugins can be changed here",
                      override));
  }
}

/// The changed keys, as KEY=FILE, whose file has the checksum of the run's data file: it was only moved.
std::vector<std::string> moved_data(const RunHeader& header, const LoadedExperiment& original,
                                    const LoadedExperiment& changed, const std::filesystem::path& data_directory) {
  const auto before = flat_configuration(original.resolved_yaml, "config.yaml");
  std::vector<std::string> moved;
  for (const auto& [key, value] : flat_configuration(changed.resolved_yaml, "config.yaml")) {
    const auto was = before.find(key);
    if (was == before.end() || was->second == value) continue;
    std::error_code ignored;
    std::filesystem::path now = value;
    if (!is_regular_file(now, ignored)) now = data_directory / value;
    if (is_regular_file(now, ignored) && checksum(header, was->second) == sha256_of_file(now))
      moved.push_back(key + "=" + yaml_text(Value(value)));
  }
  return moved;
}

void print_values(const Evaluated& found, const std::filesystem::path& network, Split split) {
  fmt::print("{} of step {} on the {} split of {}, {}\n", network.string(), found.step, name_of(split), found.task,
             counted(found.batches, "batch", "batches"));
  for (const auto& [name, value] : found.values) fmt::print("{:<10} {:.6g}\n", name, value);
  if (std::isfinite(found.baseline))
    fmt::print("{:<10} {:.6g} (the loss of the constant predictor)\n", "baseline", found.baseline);
  for (const Baseline& other : found.baselines) fmt::print("{:<10} {:.6g} (its loss)\n", other.name, other.loss);
}

void print_json(const Evaluated& found, const std::filesystem::path& network, Split split) {
  nlohmann::ordered_json document{{"network", network.string()}, {"step", found.step},       {"task", found.task},
                                  {"split", name_of(split)},     {"batches", found.batches}, {"values", nullptr}};
  for (const auto& [name, value] : found.values) document["values"][name] = value;
  document["baseline"] = std::isfinite(found.baseline) ? nlohmann::ordered_json(found.baseline) : nullptr;
  for (const Baseline& other : found.baselines) document["baselines"][other.name] = other.loss;
  fmt::print("{}\n", json_text(document, 2));
}

}  // namespace

int evaluate_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("evaluate", words);
  const std::filesystem::path directory =
      run_folder(arguments, "name the folder of one run: stiefel evaluate RUN [key.path=value...]", true);
  std::vector<std::string> overrides(arguments.positional.begin() + 1, arguments.positional.end());
  refuse_other_keys(overrides);
  if (arguments.has("--threads")) overrides.push_back("threads=" + arguments.value("--threads"));
  const std::filesystem::path network = chosen_network(directory, arguments);
  const Split split = chosen_split(arguments);
  OpenedRun run(directory, arguments, overrides, with_trained({}, network));
  std::optional<TrainedAs> trained;
  if (changes_task(arguments) && !run.options.trained) {
    trained.emplace(load_experiment(RunFolder{directory}.config(), {}, run.registry), run.options);
    const std::vector<std::string> moved =
        moved_data(run.made.header, trained->loaded, run.loaded, run.options.data_directory);
    if (!moved.empty()) {
      trained->loaded = load_experiment(RunFolder{directory}.config(), moved, run.registry);
    } else {
      Arguments unchanged = arguments;
      unchanged.positional.resize(1);
      look_where_it_was_started(directory, unchanged, trained->options);
    }
  }
  const Evaluated found = [&] {
    try {
      return evaluate(run.loaded, run.registry, run.options, network, split, trained);
    } catch (const Error& error) {
      if (error.code() != Exit::damaged || overrides.empty()) throw;
      throw Error(fmt::format("the network of {} does not fit the changed task: {}", directory.string(), error.what()));
    }
  }();
  arguments.has("--json") ? print_json(found, network, split) : print_values(found, network, split);
  return int(Exit::done);
}

}  // namespace stiefel::cli
