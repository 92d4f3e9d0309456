// `stiefel repeat RUN`: the same run again, elsewhere, and whether it has the same bits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.hpp"
#include "config/load.hpp"
#include "results/analysis/compare_runs.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "record/run_directory.hpp"
#include "training/changes.hpp"
#include "training/checkpoint.hpp"
#include "training/checkpoint_index.hpp"
#include "training/run.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {

int repeat_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("repeat", words);
  const std::filesystem::path original = run_folder(arguments, "name the folder of one run: stiefel repeat RUN");
  const RunData run = read_runs({original}, {}).at(0);
  if (arguments.has("--check") && run_state(original) != RunState::finished) {
    const bool diverged = run.status.state == "diverged";
    throw Error(fmt::format("{} {}", original.string(),
                            diverged ? std::string("diverged, and only finished runs are compared")
                                     : fmt::format("is not finished, so a complete run cannot be compared with it; "
                                                   "finish it with `stiefel resume {}`",
                                                   shell_word(original.string()))),
                Exit::in_use);
  }
  std::vector<std::string> overrides;
  if (arguments.has("--threads")) overrides.push_back("threads=" + arguments.value("--threads"));
  Registry registry = found_plugins();
  if (has_checkpoint_index(original)) demand_whole(original, "config.yaml");
  if (const std::vector<std::string> names = changed_by_resuming(run.header); !names.empty())
    throw Error(fmt::format("{} was resumed with another {}, so it cannot be repeated from its start",
                            original.string(), fmt::join(names, ", ")));
  const LoadedExperiment loaded = load_experiment(original / "config.yaml", overrides, registry);
  warn_of_rebuilt_plugins(run, loaded, registry);
  Ranks alone;
  RunOptions options = running_options(arguments, alone, "repeat", words);
  look_where_it_was_started(original, arguments, options);
  demand_same_data(run, loaded, arguments, options);
  options.output = arguments.value("--output", "repeats");
  if (std::filesystem::weakly_canonical(options.output / loaded.experiment.name / loaded.id) ==
      std::filesystem::weakly_canonical(original))
    throw Error(fmt::format("{} is the run itself; choose another folder with --output", original.string()));
  std::filesystem::path made;
  const int code = train(arguments, options, [&](RunObserver& observer) {
    RunSummary summary = run_experiment(loaded, registry, options, observer);
    made = summary.directory;
    if (summary.state == "existing")
      summary.message = fmt::format(
          "{} was repeated before and is not trained again; choose another folder with "
          "--output, or delete it",
          made.string());
    return summary;
  });
  if (code != 0 || !arguments.has("--check")) return code;
  if (equivalent(original, made))
    throw Error(fmt::format("{} is the run itself; choose another folder with --output", original.string()));
  const std::vector<std::string> found = differing(original, made);
  if (!found.empty())
    throw Error(fmt::format("{} and {} differ in {} places: {}{}", original.string(), made.string(), found.size(),
                            fmt::join(std::span(found).first(std::min<std::size_t>(found.size(), 10)), ", "),
                            found.size() > 10 ? ", …" : ""),
                Exit::damaged);
  fmt::print("identical to the bit with {}\n", original.string());
  return int(Exit::done);
}

}  // namespace stiefel::cli
