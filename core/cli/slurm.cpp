// `stiefel slurm DIR`: writes job scripts for the runs of a sweep, and prints the commands that submit them.
#include <fmt/format.h>

#include <filesystem>

#include "base/number_from.hpp"
#include "base/printable.hpp"
#include "base/say.hpp"
#include "sweep/slurm.hpp"

#include "cli/commands.hpp"
#include "cli/working.hpp"

namespace stiefel::cli {

namespace {

/// Throws Error for a limit M, M:S or H:M:S that leaves no time to train before the signal two minutes before it.
void demand_time_to_train(const std::string& time) {
  std::vector<double> parts;
  for (const std::string& part : split_at(time, ":")) {
    const std::optional<double> number = number_from<double>(part);
    if (!number) return;  // days, or "infinite": sbatch judges it
    parts.push_back(*number);
  }
  const double minutes = parts.size() == 3 ? 60 * parts[0] + parts[1] : parts[0];
  if (time != "0" && minutes < 4)
    throw Error(
        fmt::format("--time {}: Slurm signals a run two minutes before its limit, so it would barely train; "
                    "give at least 4 minutes",
                    time));
}

}  // namespace

int slurm_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("slurm", words);
  if (arguments.positional.empty()) throw Error("name the folder of a sweep: stiefel slurm DIR [-- SBATCH_OPTION...]");
  SlurmOptions options;
  options.array_limit = whole_number(arguments, "--array-limit", options.array_limit);
  options.jobs = whole_number(arguments, "--jobs", 0);
  options.threads = int(whole_number(arguments, "--threads", 0));
  options.time = arguments.value("--time");
  demand_time_to_train(options.time);
  options.data_directory = arguments.value("--data");
  options.further.assign(arguments.positional.begin() + 1, arguments.positional.end());
  for (const std::string& option : options.further)
    if (!option.starts_with('-') || option.find('\n') != option.npos)
      throw Error(fmt::format("'{}' is not an option of sbatch; write options as --name=value after --", option));
  const SweepFolder folder(arguments.positional.front());
  const std::vector<std::vector<std::filesystem::path>> stages = write_slurm_scripts(folder, options);
  if (!stages.empty()) std::filesystem::remove(folder.cancelled());  // the jobs continue the sweep
  std::string after;
  for (const auto& scripts : stages) {
    const bool last = &scripts == &stages.back();
    std::vector<std::string> commands;
    for (const auto& script : scripts)
      commands.push_back(fmt::format("sbatch{}{} {}", last ? "" : " --parsable", after, shell_word(script.string())));
    if (last)
      fmt::print("{}\n", fmt::join(commands, "\n"));
    else
      fmt::print("jobs=$({})\n", fmt::join(commands, "):$("));
    after = " --dependency=afterany:$jobs";
  }
  if (stages.empty())
    say("nothing is left to submit; `stiefel sweep status {}` shows why\n", shell_word(folder.path().string()));
  return int(Exit::done);
}

}  // namespace stiefel::cli
