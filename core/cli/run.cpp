// `stiefel run FILE [key.path=value...]`: train, evaluate, record.
#include <fmt/format.h>

#include "config/load.hpp"
#include "training/dry_run.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {
namespace {

int run_file(const Arguments& arguments, Ranks& ranks, std::span<const std::string> words) {
  std::vector<std::string> overrides(arguments.positional.begin() + 1, arguments.positional.end());
  if (arguments.has("--threads")) overrides.push_back("threads=" + arguments.value("--threads"));
  Registry registry = found_plugins();
  const LoadedExperiment loaded = load_experiment(arguments.positional.front(), overrides, registry);
  demand_planned_run(loaded.id, arguments.positional.front());
  const RunOptions options = running_options(arguments, ranks, "run", words);
  if (!arguments.has("--dry-run"))
    return train_observed(arguments, options,
                          [&](RunObserver& observer) { return run_experiment(loaded, registry, options, observer); });
  const DryRun dry = dry_run(loaded, registry, options);
  if (!ranks.first()) return int(Exit::done);
  for (const std::string& remark : dry.remarks) print_warning(remark);
  for (const std::string& line : dry.lines) fmt::print("{}\n", line);
  return int(Exit::done);
}

}  // namespace

int run_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("run", words);
  if (arguments.positional.empty()) throw Error("name the file: stiefel run FILE [key.path=value...]");
  return with_ranks(arguments, [&](Ranks& ranks) { return run_file(arguments, ranks, words); });
}

}  // namespace stiefel::cli
