// `stiefel resume RUN`: resumes a run that was stopped, or trains a finished one for longer.
#include <fmt/format.h>

#include "training/run.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/opened_run.hpp"
#include "cli/progress.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {
namespace {

int resume_folder(const Arguments& arguments, Ranks& ranks, std::span<const std::string> words) {
  const std::filesystem::path directory =
      run_folder(arguments, "name the folder of one run: stiefel resume RUN [key.path=value...]", true);
  std::vector<std::string> overrides(arguments.positional.begin() + 1, arguments.positional.end());
  if (arguments.has("--threads")) overrides.push_back("threads=" + arguments.value("--threads"));
  LoadedRun run(directory, arguments, overrides, running_options(arguments, ranks, "resume", words));
  return train_observed(arguments, run.options, [&](RunObserver& observer) {
    return resume_experiment(directory, run.loaded, run.registry, run.options, arguments.words("--allow-change"),
                             observer);
  });
}

}  // namespace

int resume_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("resume", words);
  return with_ranks(arguments, [&](Ranks& ranks) { return resume_folder(arguments, ranks, words); });
}

}  // namespace stiefel::cli
