#include "results/analysis/report/convert.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include <stiefel/error.hpp>

#include "base/atomic_file.hpp"
#include "results/analysis/report/heat_image.hpp"
#include "results/analysis/report/layout.hpp"
#include "results/analysis/report/pgf.hpp"
#include "results/analysis/report/svg.hpp"

namespace stiefel::report {
namespace {

namespace fs = std::filesystem;

/// Throws Error if a program is missing. `package` is the one in Debian that has it.
void demand_program(const std::string& name, const std::string& package) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/bin:/usr/bin");  // the default of posix_spawnp()
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((fs::path(folder) / name).c_str(), X_OK) == 0) return;
  throw Error(fmt::format("there is no program {0}; install it, in Debian with apt install {1}", name, package));
}

/// Runs a program and discards its output. Throws Error if it fails.
void start(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int fault = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (fault) throw Error(fmt::format("cannot start {}: {}", words[0], std::strerror(fault)), Exit::internal);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(fmt::format("{} failed; run it by hand to see why: {}", words[0], fmt::join(words, " ")),
                Exit::internal);
}

/// A temporary folder that is removed with everything in it.
struct ScratchFolder {
  fs::path path;
  ScratchFolder() {
    std::error_code fault;
    const fs::path parent = fs::temp_directory_path(fault);
    std::string pattern = (parent / "stiefel-report-XXXXXX").string();
    if (fault || !mkdtemp(pattern.data()))
      throw Error("cannot create a folder for temporary files; set TMPDIR to one that can be written to",
                  Exit::exhausted);
    path = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

bool is_converted(const std::string& format) { return format == "pdf" || format == "png"; }

}  // namespace

void demand_converters(const std::string& format, bool prints) {
  if (is_converted(format)) demand_program("rsvg-convert", "librsvg2-bin");
  if (prints) demand_program("chromium", "chromium");
}

void write_figures(const std::vector<Section>& sections, const fs::path& folder, const std::string& format,
                   std::optional<double> width) {
  std::error_code fault;
  if (fs::create_directories(folder, fault); fault)
    throw Error(fmt::format("cannot create the folder {}: {}; choose another with --figures", folder.string(),
                            fault.message()));
  std::optional<ScratchFolder> scratch;
  if (is_converted(format)) scratch.emplace();
  for (const Section& section : sections)
    for (const Figure& figure : section.figures) {
      replace_file(folder / (figure.id + ".csv"), csv_of(figure));
      if (format == "pgf") {
        if (figure.heat)
          replace_file(folder / (figure.id + ".png"), heat_png(*figure.heat, colour_scale(*figure.heat), 8));
        replace_file(folder / (figure.id + ".pgf"), pgf_of(figure, width.value()));
        continue;
      }
      const fs::path svg = (scratch ? scratch->path : folder) / (figure.id + ".svg");
      replace_file(svg, standalone_svg(figure, width));
      if (format == "svg") continue;
      start({"rsvg-convert", "--format", format, "--zoom", format == "png" ? "3" : "1", "--background-color", "white",
             "--output", (folder / (figure.id + "." + format)).string(), svg.string()});
    }
}

void print_page(const std::string& html, const fs::path& pdf) {
  const ScratchFolder scratch;
  const fs::path page = scratch.path / "report.html", printed = scratch.path / "report.pdf";
  replace_file(page, html);
  std::vector<std::string> words = {"chromium", "--headless", "--disable-gpu", "--no-pdf-header-footer",
                                    "--user-data-dir=" + (scratch.path / "profile").string()};
  if (geteuid() == 0) words.push_back("--no-sandbox");  // as root, Chromium starts only without its sandbox
  words.insert(words.end(), {"--print-to-pdf=" + printed.string(), "file://" + page.string()});
  start(words);
  if (!fs::exists(printed))
    throw Error("chromium printed nothing; open the report in a browser and print it there", Exit::internal);
  std::ifstream content(printed, std::ios::binary);
  replace_file(pdf, std::string(std::istreambuf_iterator<char>(content), {}));
}

}  // namespace stiefel::report
