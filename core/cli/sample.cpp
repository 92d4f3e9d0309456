// `stiefel sample RUN`: text from the network of a run.
#include <fmt/format.h>

#include <filesystem>

#include "base/number_from.hpp"
#include "config/load.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "training/sample.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {
namespace {

template <class T> T number_option(const Arguments& arguments, const std::string& option, T otherwise, T least) {
  if (!arguments.has(option)) return otherwise;
  const std::string text = arguments.value(option);
  const std::optional<T> value = number_from<T>(text);
  if (!value || !(*value >= least))
    throw Error(fmt::format("{} must be a {}number of at least {}, got \"{}\"", option,
                            std::is_integral_v<T> ? "whole " : "", least, text));
  return *value;
}

}  // namespace

int sample_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("sample", words);
  if (arguments.positional.size() != 1) throw Error("name the folder of one run: stiefel sample RUN");
  const std::filesystem::path directory = run_folder(arguments.positional.front());
  SampleOptions options;
  options.network = chosen_network(directory, arguments);
  options.length = number_option<Index>(arguments, "--length", options.length, 0);
  options.temperature = number_option<double>(arguments, "--temperature", options.temperature, 0);
  options.seed = number_option<std::uint64_t>(arguments, "--seed", options.seed, 0);
  if (arguments.has("--prime")) options.prime = arguments.value("--prime");

  Registry registry = found_plugins();
  const LoadedExperiment loaded = load_experiment(directory / "config.yaml", {"threads=1"}, registry);
  RunOptions run;
  look_where_it_was_started(directory, arguments, run);
  demand_same_data(read_runs({directory}, {}).at(0), loaded, arguments, run);
  sample(loaded, registry, run, options, [](std::string_view text) { fmt::print("{}", text); });
  fmt::print("\n");
  return int(Exit::done);
}

}  // namespace stiefel::cli
