// `stiefel report`: the results of runs as one HTML file with figures and tables.
#include <fmt/format.h>

#include <stiefel/error.hpp>
#include "base/atomic_file.hpp"
#include "base/say.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "results/analysis/report/convert.hpp"
#include "results/analysis/report/page.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"

namespace stiefel::cli {
namespace {

std::string figure_format(const Arguments& arguments) {
  const std::string format = arguments.value("--format", "svg");
  if (format != "svg" && format != "pdf" && format != "png")
    throw Error(fmt::format("--format must be svg, pdf or png, not \"{}\"", format));
  if (!arguments.has("--figures") && arguments.has("--format")) throw Error("--format needs --figures FOLDER");
  return format;
}

}  // namespace

int report_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("report", words);
  if (arguments.positional.empty()) throw Error("name folders of runs: stiefel report runs/NAME");
  const std::string format = figure_format(arguments);
  report::StudyBuilder builder(arguments.value("--metric"), words_at_commas(arguments.value("--by")));
  read_runs(find_runs(arguments.positional), report::report_request(),
            [&](RunData&& run) { builder.take(std::move(run)); });
  const report::Study study = builder.finish();
  for (const RunData& run : study.unreadable) say("stiefel: {}: {}\n", run.path.string(), run.unreadable);
  const std::vector<report::Section> sections =
      report::figures_of(study, words_at_commas(arguments.value("--against")));
  const std::string html = report::page(study, sections, arguments.value("--title"));
  const bool other = arguments.has("--figures") || arguments.has("--pdf");
  if (arguments.has("--figures")) report::write_figures(sections, arguments.value("--figures"), format);
  if (arguments.has("--pdf")) report::print_page(html, arguments.value("--pdf"));
  if (!other || arguments.has("--output")) {
    const std::string output = arguments.value("--output", "report.html");
    replace_file(output, html);
    fmt::print("{}\n", output);
  }
  return int(Exit::done);
}

}  // namespace stiefel::cli
