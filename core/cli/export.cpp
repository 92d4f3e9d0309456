// `stiefel export RUN`: what was recorded, for other programs.
#include <fmt/format.h>

#include <stiefel/error.hpp>
#include "base/printable.hpp"
#include "base/say.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "results/analysis/run_tables.hpp"
#include "results/record/run_directory.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/table_text.hpp"

namespace stiefel::cli {

int export_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("export", words);
  if (arguments.positional.size() != 1) throw Error("name the folder of one run: stiefel export RUN --csv");
  const bool csv = arguments.has("--csv"), tensorboard = arguments.has("--tensorboard");
  if (!csv && !tensorboard) throw Error("choose a format: --csv, --tensorboard or both");
  const RunData run = read_runs({find_run(arguments.positional.front())}, export_request()).at(0);
  if (!run.unreadable.empty())
    throw Error(fmt::format("cannot read {}: {}", run.path.string(), printable(run.unreadable)), Exit::damaged);
  if (run.datasets.empty()) throw Error(fmt::format("{} has recorded nothing yet", run.path.string()));

  const std::filesystem::path folder = arguments.has("--output")
                                           ? std::filesystem::path(arguments.value("--output"))
                                           : run_path("exports", run.header.title, run.header.run_id);
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  if (fault)
    throw Error(
        fmt::format("cannot create the folder {}: {}; choose another with --output", folder.string(), fault.message()));
  std::vector<std::filesystem::path> files;
  if (csv) {
    const std::vector<RunTable> tables = tables_of(run);
    files = export_csv(tables, folder);
    for (const RunTable& table : tables)
      for (const std::string& path : table.left_out)
        say("{} has too many columns for a CSV file and is left out\n", printable(path));
  }
  // TensorBoard looks for "tfevents" in names.
  if (tensorboard) export_tensorboard(run, files.emplace_back(folder / "events.out.tfevents.stiefel"));
  for (const auto& file : files) fmt::print("{}\n", file.string());
  return int(Exit::done);
}

}  // namespace stiefel::cli
