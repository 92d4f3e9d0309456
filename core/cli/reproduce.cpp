// `stiefel reproduce list|report [NAME...]` and `stiefel reproduce NAME...`: published results, rerun and compared with
// what was published.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/json_text.hpp"
#include "base/number_from.hpp"
#include "base/printable.hpp"
#include "base/say.hpp"
#include "config/shipped.hpp"
#include "sweep/reproduction.hpp"

#include "cli/commands.hpp"
#include "cli/reproduction_report.hpp"
#include "cli/running.hpp"
#include "cli/working.hpp"

namespace stiefel::cli {
namespace {

namespace fs = std::filesystem;

/// The file with what was measured. `report` writes it next to REPRODUCTION.md, and reads it for rows whose runs are
/// gone.
constexpr const char* record_name = "reproduction.json";

fs::path experiments_folder(const Arguments& arguments) {
  if (arguments.has("--experiments")) return arguments.value("--experiments");
  if (fs::exists("experiments/papers/published.yaml")) return "experiments";
  if (const fs::path folder = shipped_experiments(); !folder.empty()) return folder;
  throw Error("there is no experiments/papers/published.yaml here; name the folder that holds it with --experiments");
}

/// The folder of the runs. By default it is outside any checkout, since runs take days.
fs::path output_folder(const Arguments& arguments) {
  if (arguments.has("--output")) return arguments.value("--output");
  const fs::path user = user_data_folder();
  if (user.empty()) throw Error("neither HOME nor XDG_DATA_HOME is set; name the folder of the runs with --output");
  return user / "reproduction";
}

double budget_of(const Arguments& arguments) {
  if (!arguments.has("--budget")) return 1;
  const std::optional<double> budget = number_from<double>(arguments.value("--budget"));
  if (!budget || !(*budget > 0) || !(*budget <= 1))
    throw Error(
        fmt::format("--budget must be a number above 0 and at most 1, got \"{}\"", arguments.value("--budget")));
  return *budget;
}

nlohmann::ordered_json json_of(const ReproducedRow& row) {
  nlohmann::ordered_json seeds = nlohmann::ordered_json::array();
  for (const Measurement& seed : row.seeds)
    if (!seed.state.empty()) {
      seeds.push_back(json_of(seed));
      seeds.back()["run"] = seed.run.string();
    }
  const PublishedRow& published = *row.row;
  return {{"paper", published.paper},
          {"item", published.item},
          {"row", published.row},
          {"file", published.file},
          {"set", published.overrides},
          {"metric", published.metric},
          {"kind", published.kind},
          {"measured_as", published.measured_as},
          {"certainty", published.certainty},
          {"budget", published.budget},
          {"needs", published.needs},
          {"published", published.value},
          {"measured", row.mean},
          {"share", row.share},
          {"state", state_of(row)},
          {"runs", seeds}};
}

int list_rows(const std::vector<ReproducedRow>& rows, const Arguments& arguments) {
  if (arguments.has("--json")) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const ReproducedRow& row : rows) json.push_back(json_of(row));
    fmt::print("{}\n", json_text(json, 2));
    return int(Exit::done);
  }
  fmt::print("{}\n{}", aligned(reproduction_table(rows)), reproduction_summary(rows));
  return int(Exit::done);
}

fs::path report_folder(const PublishedResults& published, const Arguments& arguments) {
  const fs::path results = published.folder / "../results";
  return arguments.has("--to") ? fs::path(arguments.value("--to"))
         : fs::exists(results) ? results / "measured"
                               : fs::path(".");
}

int report(const PublishedResults& published, const Reproduction& reproduction,
           const std::vector<const PublishedRow*>& chosen, const fs::path& output, const fs::path& to) {
  const std::vector<ReproducedRow> all = reproduction.look(published.choose({}), to / record_name);
  std::vector<ReproducedRow> rows;
  std::ranges::copy_if(all, std::back_inserter(rows),
                       [&](const ReproducedRow& row) { return std::ranges::find(chosen, row.row) != chosen.end(); });
  fs::create_directories(to);
  fs::create_directories(output);
  const fs::path document = (to / "REPRODUCTION.md").lexically_normal(), page = output / "reproduction.html";
  replace_file(to / record_name, record_of(all));
  write_reproduction(published, rows, document, page);
  fmt::print("{}\n{}\n", document.string(), page.string());
  return int(Exit::done);
}

int run_rows(const Reproduction& reproduction, const std::vector<const PublishedRow*>& rows, const fs::path& output,
             std::span<const std::string> words, const Arguments& arguments) {
  Sweep missing = reproduction.missing(rows, budget_of(arguments));
  if (arguments.has("--dry-run")) {
    fmt::print("id\t{}\n", fmt::join(missing.keys, "\t"));
    for (const SweepRun& one : missing.runs) fmt::print("{}\t{}\n", one.id, fmt::join(one.values, "\t"));
    return int(Exit::done);
  }
  int code = int(Exit::done);
  if (!missing.runs.empty()) {
    keep_places(missing, arguments);
    add_to_sweep(output, missing, "stiefel reproduce " + shell_line(words));
    const SweepFolder folder(output);
    fs::remove(folder.cancelled());
    if (!arguments.has("--quiet")) say("{}: {} to do\n", output.string(), counted(missing.runs.size(), "run"));
    if (arguments.has("--plan")) return int(Exit::done);
    WorkerOptions options = worker_options(arguments);
    forget_failures(folder, missing.runs, by_file_time(options.patience));
    for (const SweepRun& one : missing.runs) options.among.insert(one.id);
    code = do_runs(folder, options, arguments.has("--quiet"));
  }
  fmt::print("{}", aligned(reproduction_table(reproduction.look(rows))));
  return code;
}

}  // namespace

int reproduce_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("reproduce", words);
  if (arguments.positional.empty())
    throw Error(
        "choose what to reproduce: stiefel reproduce list, or a paper, an item or an experiment that it shows, or "
        "report");
  const std::string& what = arguments.positional.front();
  const bool shows = what == "list" || what == "report";
  for (const char* option :
       {"--budget", "--jobs", "--plan", "--dry-run", "--threads", "--patience", "--data", "--quiet"})
    if (shows && arguments.has(option))
      throw Error(fmt::format("`stiefel reproduce {}` runs nothing; leave {} out", what, option));
  const PublishedResults published = read_published(experiments_folder(arguments));
  const std::vector<const PublishedRow*> rows = published.choose(
      {arguments.positional.begin() + (shows ? 1 : 0), arguments.positional.end()}, arguments.value("--row"));
  const fs::path output = output_folder(arguments);
  const fs::path timings =
      arguments.value("--timings", (published.folder / "../results/measured/timings.json").string());
  Registry registry = found_plugins();
  const Reproduction reproduction(published, output, timings, registry);
  if (what == "report" && arguments.positional.size() > 1 && !arguments.has("--to"))
    throw Error("a report of some items would replace that of all; name its folder with --to");
  const fs::path to = report_folder(published, arguments);
  if (what == "list") return list_rows(reproduction.look(rows, to / record_name), arguments);
  if (what == "report") return report(published, reproduction, rows, output, to);
  return run_rows(reproduction, rows, output, words, arguments);
}

}  // namespace stiefel::cli
