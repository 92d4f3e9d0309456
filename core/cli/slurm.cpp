// `stiefel slurm DIR`: job scripts for the runs of a sweep; on stdout the commands that submit them.
#include <fmt/format.h>

#include <sweep/slurm.hpp>

#include "commands.hpp"
#include "working.hpp"

namespace stiefel::cli {

int slurm_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("slurm", words);
  if (arguments.positional.empty()) throw Error("name the folder of a sweep: stiefel slurm DIR [-- options of sbatch]");
  SlurmOptions options;
  options.array_limit = whole_number(arguments, "--array-limit", options.array_limit);
  options.threads = int(whole_number(arguments, "--threads", 0));
  options.time = arguments.value("--time");
  options.data_directory = arguments.value("--data");
  options.further.assign(arguments.positional.begin() + 1, arguments.positional.end());
  for (const std::string& option : options.further)
    if (!option.starts_with('-') || option.find('\n') != option.npos)
      throw Error(fmt::format("'{}' is no option of sbatch; write them as --name=value after --", option));
  const SweepFolder folder(arguments.positional.front());
  const std::vector<std::filesystem::path> scripts = write_slurm_scripts(folder, options);
  for (const std::filesystem::path& script : scripts) fmt::print("sbatch {}\n", script.string());
  if (scripts.empty()) fmt::print(stderr, "nothing is left to submit; `stiefel sweep status {}` says why\n", folder.path().string());
  return int(Exit::done);
}

}  // namespace stiefel::cli
