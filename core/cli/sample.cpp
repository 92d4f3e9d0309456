// `stiefel sample RUN`: generates text with the network of a run.
#include <fmt/format.h>

#include <climits>
#include <filesystem>

#include "base/number_from.hpp"
#include "config/load.hpp"
#include "training/sample.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/opened_run.hpp"

namespace stiefel::cli {

int sample_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("sample", words);
  const std::filesystem::path directory = run_folder(arguments, "name the folder of one run: stiefel sample RUN");
  SampleOptions options;
  options.network = chosen_network(directory, arguments);
  options.length = whole_number(arguments, "--length", options.length, 0);
  if (arguments.has("--temperature")) {
    const std::string text = arguments.value("--temperature");
    options.temperature = number_from<double>(text).value_or(-1);
    if (!(options.temperature >= 0))
      throw Error(fmt::format("--temperature must be a number of at least 0, got '{}'", text));
  }
  options.seed = std::uint64_t(whole_number(arguments, "--seed", long(options.seed), 0, LONG_MAX));
  if (arguments.has("--prime")) options.prime = arguments.value("--prime");

  OpenedRun run(directory, arguments);
  sample(run.loaded, run.registry, run.options, options, [](std::string_view text) { fmt::print("{}", text); });
  fmt::print("\n");
  return int(Exit::done);
}

}  // namespace stiefel::cli
