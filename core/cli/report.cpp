// `stiefel report`: the results of runs as one HTML file with figures and tables.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>

#include <stiefel/error.hpp>
#include "base/atomic_file.hpp"
#include "base/printable.hpp"
#include "base/say.hpp"
#include "record/run_folder.hpp"
#include "record/run_lock.hpp"
#include "results/analysis/isolated_reader.hpp"
#include "results/analysis/report/convert.hpp"
#include "results/analysis/report/page.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"
#include "cli/serve.hpp"
#include "cli/working.hpp"

namespace stiefel::cli {
namespace fs = std::filesystem;
namespace {

std::string figure_format(const Arguments& arguments) {
  const std::string format = arguments.value("--format", "svg");
  if (format != "svg" && format != "pdf" && format != "png" && format != "pgf")
    throw Error(fmt::format("--format must be svg, pdf, png or pgf, not \"{}\"", format));
  for (const char* option : {"--format", "--style"})
    if (!arguments.has("--figures") && arguments.has(option))
      throw Error(fmt::format("{} needs --figures FOLDER", option));
  if (format == "pgf" && !arguments.has("--style")) throw Error("--format pgf needs --style paper");
  return format;
}

/// The width of figures for a paper, in mm; nothing for other figures.
std::optional<double> paper_width(const Arguments& arguments) {
  if (!arguments.has("--style")) {
    if (arguments.has("--width")) throw Error("--width needs --style paper");
    return std::nullopt;
  }
  if (arguments.value("--style") != "paper")
    throw Error(fmt::format("--style must be paper, not \"{}\"", arguments.value("--style")));
  const double width = arguments.positive("--width", 85);
  if (width < 60 || width > 400) throw Error(fmt::format("--width must be from 60 to 400 mm, not {}", width));
  return width;
}

struct Report {
  report::Study study;
  std::vector<report::Section> sections;
  std::string html;
};

Report report_of(const Arguments& arguments) {
  report::StudyBuilder builder(arguments.value("--metric"), arguments.words("--by"), arguments.values("--where"),
                               arguments.values("--label"), arguments.words("--against"));
  read_runs(find_runs(arguments.positional), report::report_request(arguments.value("--metric")),
            [&](RunData&& run) { builder.take(std::move(run)); });
  Report made{builder.finish(), {}, {}};
  made.study.seed = arguments.value("--seed");
  made.sections = report::figures_of(made.study, arguments.words("--against"));
  made.html = report::page(made.study, made.sections, arguments.value("--title"));
  return made;
}

/// The page of the runs in their present state. It is made again only if one of them has changed.
class ServedReport {
 public:
  explicit ServedReport(const Arguments& arguments) : arguments_(arguments) {}

  Page page() {
    std::vector<Version> versions;
    for (const fs::path& run : find_runs(arguments_.positional)) {
      std::error_code gone;
      versions.emplace_back(run.string(), fs::last_write_time(RunFolder{run}.results(), gone),
                            shown_owner(RunFolder{run}.lock()));
    }
    if (versions != versions_) {
      const Report made = report_of(arguments_);
      page_.html = made.html;
      running_ =
          std::ranges::any_of(made.study.runs(), [](const RunData* run) { return run->status.state == "running"; });
      versions_ = std::move(versions);
    }
    const auto now = fs::file_time_type::clock::now();
    page_.growing = running_ || std::ranges::any_of(versions_, [&](const Version& version) {  // or another may follow
                      return now - std::get<fs::file_time_type>(version) < std::chrono::minutes(1);
                    });
    return page_;
  }

 private:
  using Version = std::tuple<std::string, fs::file_time_type, std::string>;  // run, last publish, who works on it

  const Arguments& arguments_;
  std::vector<Version> versions_;
  Page page_;
  bool running_ = false;
};

int serve_report(const Arguments& arguments) {
  for (const char* other : {"--output", "--figures", "--pdf"})
    if (arguments.has(other)) throw Error(fmt::format("--serve writes nothing; leave {} out", other));
  const Index port = whole_number(arguments, "--port", 8000, 0, 65535);
  ServedReport report(arguments);
  report.page();  // reports errors before the server starts
  serve(
      std::uint16_t(port), [&] { return report.page(); },
      [](const std::string& address) { say("serving the report at {} until Ctrl-C\n", address); });
  return int(Exit::done);
}

}  // namespace

int report_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("report", words);
  if (arguments.positional.empty()) throw Error("name folders of runs: stiefel report runs/NAME");
  const std::string format = figure_format(arguments);
  const std::optional<double> width = paper_width(arguments);
  if (arguments.has("--serve")) return serve_report(arguments);
  if (arguments.has("--port")) throw Error("--port needs --serve");
  const std::string output = arguments.file("--output", "report.html"), pdf = arguments.file("--pdf");
  report::demand_converters(format, !pdf.empty());
  const auto [study, sections, html] = report_of(arguments);
  for (const RunData& run : study.unreadable)
    say("unreadable: {}: {}\n", printable(run.path.string()), printable(run.unreadable));
  warn_of_failures(arguments.positional);
  for (const std::string& doubt : study.doubts) print_warning(doubt);
  const bool other = arguments.has("--figures") || !pdf.empty();
  if (arguments.has("--figures")) report::write_figures(sections, arguments.value("--figures"), format, width);
  if (!pdf.empty()) report::print_page(html, pdf);
  if (!other || arguments.has("--output")) {
    replace_file(output, html);
    fmt::print("{}\n", output);
  }
  return int(study.unreadable.empty() ? Exit::done : Exit::damaged);
}

}  // namespace stiefel::cli
