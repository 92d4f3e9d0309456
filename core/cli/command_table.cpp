// The table, and reading of a command line by it.
#include "cli/command_table.hpp"

#include <fmt/format.h>

#include <boost/make_shared.hpp>
#include <boost/program_options.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <stiefel/error.hpp>
#include "base/number_from.hpp"
#include "base/suggestion.hpp"

namespace stiefel::cli {

namespace options = boost::program_options;
namespace style = options::command_line_style;

const std::vector<Command>& commands() {
  static const Option threads = {"--threads", Word::text, "worker threads; 0: one for each core"};
  static const Option data = {"--data", Word::folder, "folder of the data sets, instead of STIEFEL_DATA or the cache"};
  static const Option mpi = {"--mpi", Word::none, "train together with the other processes that mpirun has started"};
  static const Option json = {"--json", Word::none, "output for programs"};
  static const Option quiet = {"--quiet", Word::none, "errors only"};
  static const Option until = {"--until", Word::text, "save a checkpoint after this step and stop there (exit code 75)"};
  static const Option patience = {"--patience", Word::text,
                                  "seconds without a sign of life after which the claim of a worker on another host is taken over (60)"};
  static const std::vector<Command> table = {
      {"run",
       "FILE [key.path=value...]",
       Word::experiment,
       Word::key,
       "train the network of an experiment and store what is recorded",
       {{"--dry-run", Word::none, "resolve everything, load the data, do one step, print sizes and times, store nothing", 'n'},
        data,
        threads,
        mpi,
        {"--output", Word::folder, "folder of all runs, instead of runs", 'o'},
        until,
        {"--no-progress", Word::none, "no progress line"},
        {"--quiet", Word::none, "errors only"}}},
      {"resume",
       "RUN [key.path=value...]",
       Word::folder,
       Word::key,
       "go on with a run that was stopped, from its newest checkpoint",
       {{"--allow-change", Word::text, "what may differ from the start of the run: names separated by commas, or all"},
        until,
        data,
        threads,
        mpi,
        {"--no-progress", Word::none, "no progress line"},
        {"--quiet", Word::none, "errors only"}}},
      {"repeat",
       "RUN",
       Word::folder,
       Word::none,
       "do a run again from its config.yaml, in another folder, and compare",
       {{"--output", Word::folder, "folder of the repeated run, instead of repeats", 'o'},
        {"--check", Word::none, "compare results.h5 and networks bit by bit; exit code 6 when they differ"},
        data,
        threads,
        {"--no-progress", Word::none, "no progress line"},
        {"--quiet", Word::none, "errors only"}}},
      {"sweep",
       "run FILE [key.path=value...] | status|resume|retry|cancel DIR",
       Word::text,
       Word::experiment,
       "do the many runs that `seeds:` and `sweep:` make of one file",
       {{"--jobs", Word::text, "runs at a time, each on its share of the cores (1)", 'j'},
        {"--fail-fast", Word::none, "stop all runs when one fails; otherwise the others go on"},
        {"--failed", Word::none, "retry: the runs that failed"},
        {"--plan", Word::none, "run: make the folder, for workers, and run nothing"},
        {"--dry-run", Word::none, "run: print the runs, write nothing", 'n'},
        {"--output", Word::folder, "run: folder of the sweep, instead of sweeps/NAME", 'o'},
        {"--threads", Word::text, "worker threads of each run, instead of a share of the cores"},
        patience,
        data,
        json,
        quiet}},
      {"worker",
       "DIR",
       Word::folder,
       Word::none,
       "work on a sweep that was planned, beside other workers on any host that has the folder",
       {{"--jobs", Word::text, "runs at a time, each on its share of the cores (1)", 'j'},
        {"--run", Word::text, "only the run with this id"},
        {"--fail-fast", Word::none, "stop when a run fails; otherwise the others go on"},
        {"--threads", Word::text, "worker threads of each run, instead of a share of the cores"},
        patience,
        data,
        quiet}},
      {"slurm",
       "DIR [-- options of sbatch...]",
       Word::folder,
       Word::text,
       "write job scripts for the runs of a sweep, and print the commands that submit them",
       {{"--array-limit", Word::text, "most elements of a job array (500)"},
        {"--jobs", Word::text, "elements of an array that run at a time, instead of as many as the site lets", 'j'},
        {"--time", Word::text, "time limit of a run, as sbatch takes it; what is not finished then is queued again"},
        {"--threads", Word::text, "cores of a run"},
        data}},
      {"reproduce",
       "list|report [NAME...] | NAME...",
       Word::text,
       Word::text,
       "run published experiments and put what they came to beside what was published",
       {{"--budget", Word::text, "part of the published steps or epochs, such as .1 (1)"},
        {"--jobs", Word::text, "runs at a time, each on its share of the cores (1)", 'j'},
        {"--plan", Word::none, "make the folder, for workers, and run nothing"},
        {"--dry-run", Word::none, "print the runs that are missing, write nothing", 'n'},
        {"--output", Word::folder, "folder of the runs, instead of ~/.local/share/stiefel/reproduction", 'o'},
        {"--experiments", Word::folder, "folder with published.yaml, instead of experiments or the installed one"},
        {"--timings", Word::text,
         "file that `tests/bench/run epochs --json` wrote, instead of results/measured/timings.json next to the experiments"},
        {"--to", Word::folder,
         "folder of REPRODUCTION.md and reproduction.json, which keeps what was measured, instead of results/measured next to the "
         "experiments"},
        {"--threads", Word::text, "worker threads of each run, instead of a share of the cores"},
        patience,
        data,
        json,
        quiet}},
      {"sample",
       "RUN",
       Word::folder,
       Word::none,
       "write text with the network of a run that has learned to predict the next character",
       {{"--length", Word::text, "number of characters (500)"},
        {"--temperature", Word::text, "what logits are divided by; 0: always the likeliest character (1)"},
        {"--prime", Word::text, "text that the network reads first (a blank)"},
        {"--seed", Word::text, "of the random numbers (1)"},
        {"--network", Word::text, "best, last or step_N of the run's checkpoints (best)"},
        data}},
      {"compare",
       "DIR...",
       Word::folder,
       Word::folder,
       "print a table of the runs below the folders, those that differ only by the seed in one row",
       {{"--by", Word::key, "keys that make the rows, separated by commas (those in which the runs differ)"},
        {"--metric", Word::text, "what is compared, such as test_loss (what the runs select their best model by)"},
        {"--reach", Word::text, "also steps and seconds until the metric is at least as good as this number"},
        {"--where", Word::text, "only runs with key=value, or with !=, <, <=, >, >= instead of =; may be given several times"},
        {"--sort", Word::text, "a key of the rows, or mean, std, median, best, n, parameters, steps, seconds"},
        {"--csv", Word::none, "every digit, for spreadsheets"},
        json,
        {"--markdown", Word::none, "for documents"},
        {"--latex", Word::none, "for papers, with the package booktabs"}}},
      {"diff",
       "A B",
       Word::folder,
       Word::folder,
       "print in what two runs differ: configuration, provenance, what they came to, bits",
       {json}},
      {"export",
       "RUN",
       Word::folder,
       Word::none,
       "write what a run recorded for other programs",
       {{"--csv", Word::none, "a CSV file for each table"},
        {"--npz", Word::none, "results.npz, for NumPy"},
        {"--tensorboard", Word::none, "an event file with the curves"},
        {"--output", Word::folder, "folder of the files, instead of exports/NAME/ID (-o)", 'o'}}},
      {"inspect",
       "RUN",
       Word::folder,
       Word::none,
       "print parameters, spectrum and orthogonality of a run's network",
       {{"--checkpoint", Word::text, "best, last or the number of a step (best)"},
        {"--output", Word::text, "NumPy file for the recurrent matrix W (-o)", 'o'},
        data,
        json}},
      {"report",
       "DIR...",
       Word::folder,
       Word::folder,
       "write what the runs below the folders have come to, with figures, into one HTML file",
       {{"--output", Word::text, "the file (report.html)", 'o'},
        {"--title", Word::text, "its title, instead of the experiments' names"},
        {"--metric", Word::text, "what runs are compared by, such as test_loss or spectrum/recurrent/singular_max"},
        {"--by", Word::key, "keys that make the groups, separated by commas (those in which the runs differ)"},
        {"--against", Word::key, "keys that the metric is drawn against, separated by commas (those with numbers)"},
        {"--figures", Word::folder, "write each figure and its numbers into this folder"},
        {"--format", Word::text, "of these figures: svg, pdf or png (svg)"},
        {"--pdf", Word::text, "print the report into this PDF file"}}},
      {"validate",
       "FILE [key.path=value...]",
       Word::experiment,
       Word::key,
       "check an experiment and say everything that is wrong with it",
       {{"--resolved", Word::none, "print every key with its effective value as YAML"},
        {"--origins", Word::none, "print where each value comes from"},
        data}},
      {"describe",
       "NAME|FILE.so|experiment",
       Word::method,
       Word::none,
       "print a method's options as YAML to start from, or a whole experiment",
       {}},
      {"list", "", Word::none, Word::none, "list the methods that can be had and the plugin files that cannot be used", {json}},
      {"schema", "", Word::none, Word::none, "print the JSON schema of experiments for editors", {}},
      {"check",
       "FILE.so... [option=value...]",
       Word::plugin_file,
       Word::plugin_file,
       "test what a plugin promises",
       {{"--all", Word::none, "every plugin that is found"},
        {"--method", Word::method, "only this method of the file"},
        {"--scalar", Word::text, "only float32 or float64"},
        {"--seed", Word::text, "only this seed"},
        {"--shape", Word::text, "ROWSxCOLUMNS, only this size of a parametrisation, complex numbers counted once"},
        {"--limit", Word::text, "seconds that one call of the plugin may take (60)"},
        data}},
      {"new", "ROLE NAME", Word::role, Word::text, "write a plugin to start from", {}},
      {"bench",
       "step|kernel FILE [key.path=value...] | complexity [key.path=value...]",
       Word::text,
       Word::experiment,
       "measure seconds per training step of an experiment, the rate of the product inside it, or how the step grows with n and T",
       {{"--threads", Word::text, "worker threads; otherwise measured with 1 and with 2, complexity with 1"},
        {"--seconds", Word::text, "how long to measure each (2, complexity 0.5)"},
        {"--maps", Word::text, "complexity: recurrent maps, separated by commas (all)"},
        {"--hidden", Word::text, "complexity: numbers n of hidden units (128,256,512,1024)"},
        {"--length", Word::text, "complexity: numbers T of steps (10,100,1000)"},
        data,
        json}},
      {"data",
       "list|fetch|verify [NAME...]",
       Word::text,
       Word::text,
       "say which data sets are there, fetch them, or check that they are what they should be",
       {{"--yes", Word::none, "agree to the terms of what is fetched"},
        {"--from", Word::text, "address of a folder that holds the files, instead of the public one"},
        {"--stall", Word::text, "seconds without progress after which fetching ends (60)"},
        {"--sets", Word::text, "a table of further sets, in the form of core/cli/data_sets.json"},
        data,
        json}},
      {"top",
       "DIR...",
       Word::folder,
       Word::folder,
       "watch runs while they go on: a live table on a terminal, a line for each change elsewhere",
       {{"--interval", Word::text, "seconds between two looks (1, in a log 30)"}, {"--once", Word::none, "print the table once"}}},
      {"completion", "bash", Word::shell, Word::none, "print the completion script of a shell", {}},
  };
  return table;
}

const Command& find_command(std::string_view name) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == name) return command;
    names.emplace_back(command.name);
  }
  const std::string close = suggestion(name, names);
  throw Error(
      fmt::format("there is no command '{}'{}", name, close.empty() ? fmt::format("; there are {}", fmt::join(names, ", ")) : close));
}

std::string Arguments::value(const std::string& option, const std::string& otherwise) const {
  const auto found = options.find(option);
  return found == options.end() ? otherwise : found->second;
}

double Arguments::positive(const std::string& option, double otherwise) const {
  const auto found = options.find(option);
  if (found == options.end()) return otherwise;
  const std::string& text = found->second;
  const std::optional<double> value = number_from<double>(text);
  if (!value || !(*value > 0 && std::isfinite(*value))) throw Error(fmt::format("{} \"{}\" is no number above 0", option, text));
  return *value;
}

std::vector<std::string> Arguments::values(const std::string& option) const {
  std::vector<std::string> found;
  for (const auto& [name, value] : given)
    if (name == option) found.push_back(value);
  return found;
}

namespace {

const Option& find_option(const Command& command, const std::string& name) {
  std::vector<std::string> names;
  for (const Option& option : command.options) {
    if (name == option.name) return option;
    names.emplace_back(option.name);
  }
  const std::string close = suggestion(name, names);
  const std::string have = names.empty() ? "; it has no options" : fmt::format("; its options are {}", fmt::join(names, ", "));
  throw Error(fmt::format("`stiefel {}` has no option {}{}", command.name, name, close.empty() ? have : close));
}

}  // namespace

Arguments parse_arguments(std::string_view name, std::span<const std::string> words) {
  const Command& command = find_command(name);
  const auto meaning_of = [&](const std::string& option) { return find_option(command, option).meaning; };
  options::options_description described;
  for (const Option& option : command.options) {
    const auto* value = new options::untyped_value(option.argument == Word::none);
    const std::string name = option.name + 2 + (option.letter ? fmt::format(",{}", option.letter) : "");
    described.add(boost::make_shared<options::option_description>(name.c_str(), value, option.meaning));
  }
  Arguments arguments;
  try {
    const auto parsed = options::command_line_parser({words.begin(), words.end()})
                            .options(described)
                            .style(style::unix_style ^ style::allow_guessing)
                            .run();
    for (const auto& option : parsed.options) {
      if (option.position_key < 0)
        arguments.given.emplace_back("--" + option.string_key, option.value.empty() ? "" : option.value.front());
      else
        arguments.positional.push_back(option.value.front());
    }
    for (const auto& [name, value] : arguments.given) arguments.options[name] = value;
  } catch (const options::unknown_option& error) {
    meaning_of(error.get_option_name());
    throw;
  } catch (const options::invalid_command_line_syntax& error) {
    const std::string option = error.get_option_name();
    if (error.kind() == error.extra_parameter) throw Error(fmt::format("{} takes no value", option));
    throw Error(fmt::format("{} needs a value: {}", option, meaning_of(option)));
  }
  return arguments;
}

long whole_number(const Arguments& arguments, const std::string& option, long otherwise) {
  if (!arguments.has(option)) return otherwise;
  const std::string text = arguments.value(option);
  const std::optional<long> value = number_from<long>(text);
  if (!value || *value < 1 || *value > 1'000'000'000) throw Error(fmt::format("{} must be a whole number from 1, got '{}'", option, text));
  return *value;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> entries;
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t end = std::min(text.find(',', first), text.size());
    entries.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  return entries;
}

std::vector<std::string> words_at_commas(const std::string& text) {
  std::vector<std::string> words = split_at_commas(text);
  std::erase(words, "");
  return words;
}

std::string data_directory(const Arguments& arguments) {
  if (arguments.has("--data")) return arguments.value("--data");
  if (const char* directory = std::getenv("STIEFEL_DATA"); directory && *directory) return directory;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::string(cache) + "/stiefel";
  const char* home = std::getenv("HOME");
  return home ? std::string(home) + "/.cache/stiefel" : "";
}

std::string help_text(const Command& command) {
  std::string text = fmt::format("usage: stiefel {}{}{}{}\n\n{}.\n", command.name, command.options.empty() ? "" : " [options]",
                                 *command.arguments ? " " : "", command.arguments, command.meaning);
  if (!command.options.empty()) text += "\noptions:\n";
  for (const Option& option : command.options) {
    const std::string letter = option.letter ? fmt::format("-{}, ", option.letter) : "";
    const std::string name = fmt::format("{}{}{}", letter, option.name, option.argument == Word::none ? "" : " VALUE");
    text += fmt::format("  {:<22}{}\n", name, option.meaning);
  }
  return text;
}

std::string help_text() {
  std::string text = "usage: stiefel COMMAND [options] [arguments]\n\n";
  for (const Command& command : commands()) text += fmt::format("  {:<12}{}\n", command.name, command.meaning);
  return text + "\n`stiefel COMMAND --help` says more about one of them.\n";
}

}  // namespace stiefel::cli
