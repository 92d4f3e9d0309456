#include "cli/man_pages.hpp"

#include <fmt/format.h>

#include <boost/algorithm/string.hpp>
#include <utility>

#include "base/printable.hpp"

namespace stiefel::cli {
namespace {

using Rows = std::vector<std::pair<const char*, const char*>>;

/// The same table as in docs/RUNNING.md.
const Rows exit_codes = {
    {"0", "success"},
    {"1", "an error in stiefel itself: please report it"},
    {"2", "an error in the command line or the configuration"},
    {"3", "a plugin is unknown or unusable, or failed its check"},
    {"4", "a data file is missing or damaged"},
    {"5", "the run diverged: NaN or infinity"},
    {"6", "a result file or checkpoint is damaged or cannot be read, or a repeated run has different bits"},
    {"7", "the run's folder is in use or holds an unfinished or diverged run, or the run began on another type of CPU"},
    {"8", "disk or memory is full, or the sizes do not fit into memory"},
    {"75", "stopped early as requested, or a sweep with unfinished runs: resume it"},
    {"129, 130, 143, 152",
     "stopped by SIGHUP, SIGINT (Ctrl-C), SIGTERM, SIGXCPU after the current step, or while it hung"},
    {"132 … 139", "crashed: killed by the signal whose number is the code minus 128, in a plugin if stderr names one"},
    {"141", "the reader of its output, such as head, has exited"},
};
const Rows variables = {
    {"STIEFEL_DATA", "folder of the data sets"},
    {"STIEFEL_PLUGIN_PATH", "more folders with plugins, separated by :"},
    {"STIEFEL_PYTHON",
     "Python with the package stiefel, with which data fetch downloads if the program was built without libcurl "
     "(default python3)"},
    {"STIEFEL_PESQ", "program that timit_prediction runs to compute PESQ"},
    {"STIEFEL_SIMD",
     "instruction set, such as SSE4, AVX2 or AVX3 (AVX-512), if the CPU has it. Each may round differently, so a run "
     "resumes only with its own. On AArch64, NEON is the only one"},
    {"OPENBLAS_CORETYPE",
     "kernels that OpenBLAS uses, if it does not recognize the CPU; they round differently, and after many steps "
     "losses differ visibly"},
    {"NO_COLOR", "if set, top uses no colors"},
    {"XDG_DATA_HOME", "folder with stiefel/plugins and stiefel/reproduction (default ~/.local/share)"},
    {"XDG_CACHE_HOME", "folder with stiefel, the data sets without STIEFEL_DATA (default ~/.cache)"},
};

/// Escapes a line of text for roff, so that hyphens can be copied and no line begins with a request.
std::string roff(std::string text) {
  boost::replace_all(text, "\\", "\\e");
  boost::replace_all(text, "-", "\\-");
  boost::replace_all(text, "…", "\\[u2026]");
  return text.starts_with('.') || text.starts_with('\'') ? "\\&" + text : text;
}

std::string item(const std::string& term, const std::string& meaning) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(term), roff(meaning));
}

std::string section(const char* title, const Rows& rows) {
  std::string text = fmt::format(".SH {}\n", title);
  for (const auto& [term, meaning] : rows) text += item(term, meaning);
  return text;
}

std::string head(const std::string& name, const std::string& meaning) {
  return fmt::format(
      ".TH \"{}\" 1 \"\" \"stiefel {}\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
      boost::to_upper_copy(name), STIEFEL_VERSION, roff(name), roff(meaning));
}

}  // namespace

std::string man_page(const Command& command) {
  std::string text = head(fmt::format("stiefel-{}", command.name), command.meaning);
  const std::string begin = fmt::format("\\fBstiefel {}\\fR [\\fIoptions\\fR] ", command.name);
  std::string forms = begin + roff(command.arguments);
  boost::replace_all(forms, " | ", "\n.br\n" + begin);
  text += fmt::format("{}\n.SH DESCRIPTION\n{}\n.SH OPTIONS\n", forms, roff(capitalised(command.meaning) + "."));
  for (const Option& option : command.options) text += item(option_text(option), option.meaning);
  return text + item("-h, --help", "print the options") +
         ".SH SEE ALSO\n\\fBstiefel\\fR(1), which lists the exit codes and the environment variables\n";
}

std::string man_page() {
  std::string text = head("stiefel", "train recurrent networks with orthogonal, unitary and other constrained maps");
  text +=
      "\\fBstiefel\\fR \\fICOMMAND\\fR [\\fIoptions\\fR] [\\fIarguments\\fR]\n.SH DESCRIPTION\n"
      "An experiment is a YAML file with a task, a network, an optimizer and a number of steps.\n"
      "\\fBstiefel run\\fR trains it and records the results in the folder runs.\n"
      "\\fBstiefel describe experiment\\fR prints every key that such a file can have.\n.SH COMMANDS\n";
  for (const Command& command : commands())
    text += fmt::format(".TP\n\\fBstiefel\\-{}\\fR(1)\n{}\n", command.name, roff(command.meaning));
  text += ".SH OPTIONS\n" + item("-h, --help", "print the commands") + item("-v, --version", "print the version") +
          item("--prefix", "print the folder with the lib, include and share of this installation");
  text += section("EXIT STATUS", exit_codes) + section("ENVIRONMENT", variables) + ".SH SEE ALSO\n";
  for (const Command& command : commands())
    text += fmt::format("\\fBstiefel\\-{}\\fR(1){}\n", command.name, &command == &commands().back() ? "" : ",");
  return text;
}

}  // namespace stiefel::cli
