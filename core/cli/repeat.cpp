// `stiefel repeat RUN`: the same run again, elsewhere, and whether it has the same bits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.hpp"
#include "record/run_directory.hpp"
#include "results/analysis/compare_bits.hpp"
#include "training/changes.hpp"
#include "training/run.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/opened_run.hpp"
#include "cli/progress.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {

int repeat_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("repeat", words);
  const std::filesystem::path original = run_folder(arguments, "name the folder of one run: stiefel repeat RUN");
  std::vector<std::string> overrides;
  if (arguments.has("--threads")) overrides.push_back("threads=" + arguments.value("--threads"));
  Ranks alone;
  OpenedRun run(original, arguments, overrides, running_options(arguments, alone, "repeat", words));
  if (arguments.has("--check") && run_state(original) != RunState::finished) {
    const bool diverged = run.made.status.state == "diverged";
    throw Error(fmt::format("{} {}", original.string(),
                            diverged ? std::string("diverged, and only finished runs are compared")
                                     : fmt::format("is not finished, so a complete run cannot be compared with it; "
                                                   "finish it with `stiefel resume {}`",
                                                   shell_word(original.string()))),
                Exit::in_use);
  }
  if (const std::vector<std::string> names = changed_by_resuming(run.made.header); !names.empty())
    throw Error(fmt::format("{} was resumed with another {}, so it cannot be repeated from its start",
                            original.string(), fmt::join(names, ", ")));
  run.options.output = arguments.value("--output", "repeats");
  if (std::filesystem::weakly_canonical(run.options.output / run.loaded.experiment.name / run.loaded.id) ==
      std::filesystem::weakly_canonical(original))
    throw Error(fmt::format("{} is the run itself; choose another folder with --output", original.string()));
  std::filesystem::path made;
  const int code = train_observed(arguments, run.options, [&](RunObserver& observer) {
    RunSummary summary = run_experiment(run.loaded, run.registry, run.options, observer);
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
