// `stiefel resume RUN`: go on with a run that was stopped.
#include <fmt/format.h>

#include "config/load.hpp"
#include "training/checkpoint.hpp"
#include "training/checkpoint_index.hpp"
#include "training/run.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {
namespace {

int resume_folder(const Arguments& arguments, Ranks& ranks, std::span<const std::string> words) {
  const std::filesystem::path directory =
      run_folder(arguments, "name the folder of one run: stiefel resume RUN [key.path=value...]", true);
  std::vector<std::string> overrides(arguments.positional.begin() + 1, arguments.positional.end());
  if (arguments.has("--threads")) overrides.push_back("threads=" + arguments.value("--threads"));
  Registry registry = found_plugins();
  if (has_checkpoint_index(directory)) demand_whole(directory, "config.yaml");
  const LoadedExperiment loaded = load_experiment(directory / "config.yaml", overrides, registry);
  RunOptions options = running_options(arguments, ranks, "resume", words);
  look_where_it_was_started(directory, arguments, options);
  return train(arguments, options, [&](RunObserver& observer) {
    return resume_experiment(directory, loaded, registry, options, arguments.words("--allow-change"), observer);
  });
}

}  // namespace

int resume_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("resume", words);
  return with_ranks(arguments, [&](Ranks& ranks) { return resume_folder(arguments, ranks, words); });
}

}  // namespace stiefel::cli
