// `stiefel export RUN`: what was recorded, for other programs.
#include <fmt/format.h>

#include <boost/algorithm/string.hpp>

#include <stiefel/error.hpp>
#include "base/atomic_file.hpp"
#include "base/printable.hpp"
#include "base/say.hpp"
#include "record/run_directory.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "results/analysis/run_tables.hpp"
#include "training/weights.hpp"

#include "cli/card.hpp"
#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/opened_run.hpp"
#include "cli/table_text.hpp"

namespace stiefel::cli {
namespace {

constexpr const char* usage = "name the folder of one run: stiefel export RUN --csv";

RunData readable_run(const std::filesystem::path& folder, const RunRequest& request) {
  RunData run = read_runs({folder}, request).at(0);
  if (!run.unreadable.empty())
    throw Error(fmt::format("cannot read {}: {}", run.path.string(), printable(run.unreadable)), Exit::damaged);
  return run;
}

void create_folder(const std::filesystem::path& folder, const char* option) {
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  if (fault)
    throw Error(fmt::format("cannot create the folder {}: {}; choose another with {}", folder.string(), fault.message(),
                            option));
}

void export_weights(const Arguments& arguments) {
  const std::filesystem::path folder = run_folder(arguments, usage), target = arguments.file("--weights"),
                              card = arguments.value("--card"), network = chosen_network(folder, arguments);
  if (target.has_extension() && !boost::iequals(target.extension().string(), ".safetensors"))
    throw Error(
        fmt::format("--weights writes safetensors: end {} in .safetensors (stiefel.torch.export_onnx() writes ONNX)",
                    target.string()));
  OpenedRun run(folder, arguments);
  const std::map<std::string, std::string> about{{"stiefel_version", STIEFEL_VERSION},
                                                 {"run_id", canonical(folder).filename().string()}};
  const std::string weights = exported_weights(run.loaded, run.registry, run.options, network, about);
  const auto write = [](const std::filesystem::path& file, const std::string& content) {
    replace_file(file, content);
    fmt::print("{}\n", file.string());
  };
  if (arguments.has("--weights")) write(target, weights);
  if (!arguments.has("--card")) return;
  const RunData made = readable_run(folder, card_request());
  create_folder(card, "--card");
  write(card / "model.safetensors", weights);
  write(card / "config.yaml", made.header.yaml);
  write(card / "README.md", card_of(made, weights, arguments.value("--license")));
}

}  // namespace

int export_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("export", words);
  const std::filesystem::path named = named_run(arguments, usage);
  const bool csv = arguments.has("--csv"), tensorboard = arguments.has("--tensorboard"),
             weights = arguments.has("--weights") || arguments.has("--card");
  if (!csv && !tensorboard && !weights)
    throw Error("choose what to write: --csv, --tensorboard, --weights FILE or --card FOLDER");
  for (const char* option : {"--last", "--step", "--data"})
    if (arguments.has(option) && !weights) throw Error(fmt::format("{} needs --weights or --card", option));
  if (arguments.has("--license") && !arguments.has("--card")) throw Error("--license needs --card");
  if (arguments.has("--output") && !csv && !tensorboard) throw Error("--output needs --csv or --tensorboard");
  if (weights) export_weights(arguments);
  if (!csv && !tensorboard) return int(Exit::done);
  const RunData run = readable_run(named, export_request());
  if (run.datasets.empty()) throw Error(fmt::format("{} has recorded nothing yet", run.path.string()));

  const std::filesystem::path folder = arguments.has("--output")
                                           ? std::filesystem::path(arguments.value("--output"))
                                           : run_path("exports", run.header.title, run.header.run_id);
  create_folder(folder, "--output");
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
