// The table of commands, and the parser of command lines that uses it.
#include "cli/command_table.hpp"

#include <fmt/format.h>

#include <boost/algorithm/string.hpp>
#include <boost/make_shared.hpp>
#include <boost/program_options.hpp>

#include <cmath>
#include <cstdlib>

#include <stiefel/error.hpp>
#include "base/number_from.hpp"
#include "base/printable.hpp"
#include "base/suggestion.hpp"

#include "cli/commands.hpp"

namespace stiefel::cli {

namespace options = boost::program_options;
namespace style = options::command_line_style;

const std::vector<Command>& commands() {
  static const Option threads = {"--threads", Word::number, "worker threads; 0: one for each core"};
  static const Option jobs = {"--jobs", Word::number, "concurrent runs, each on its share of the cores (default 1)",
                              'j'};
  static const Option threads_per_run = {"--threads", Word::number,
                                         "worker threads per run (default: its share of the cores)"};
  static const Option data = {"--data", Word::folder,
                              "folder with the data sets (default $STIEFEL_DATA, else ~/.cache/stiefel)"};
  static const Option mpi = {"--mpi", Word::none, "train jointly with the other processes that mpirun started"};
  static const Option last = {"--last", Word::none, "use the network of the last step instead of the best one"};
  static const Option step = {"--step", Word::number,
                              "use the network of the checkpoint of this step instead of the best one"};
  static const Option json = {"--json", Word::none, "machine-readable output"};
  static const Option label = {"--label", Word::text,
                               "other name KEY=TEXT for a key, or KEY=VALUE:TEXT for a value; can be repeated"};
  static const Option quiet = {"--quiet", Word::none, "print only the result, warnings and errors", 'q'};
  static const Option no_progress = {"--no-progress", Word::none, "print only the evaluations"};
  static const Option until = {"--until", Word::number, "save a checkpoint after this step and stop (exit code 75)"};
  static const Option patience = {"--patience", Word::number,
                                  "take over a run on another host after this many seconds of silence (default 60)"};
  const auto only = [](Option option, const char* actions) {
    option.actions = actions;
    return option;
  };
  static const std::vector<Command> table = {
      {"run",
       run_command,
       "FILE [key.path=value...]",
       Word::experiment,
       Word::setting,
       "train the network of an experiment and record the results",
       {{"--dry-run", Word::none, "check the file, load the data, train one step, print sizes and times; store nothing",
         'n'},
        data,
        threads,
        mpi,
        {"--output", Word::folder, "folder for all runs (default runs)", 'o'},
        until,
        no_progress,
        quiet}},
      {"resume",
       resume_command,
       "RUN [key.path=value...]",
       Word::folder,
       Word::setting,
       "resume a stopped run, or train a finished one for longer",
       {{"--allow-change", Word::name,
         "changes since the start of the run that are accepted: comma-separated names, or `all`"},
        until,
        data,
        threads,
        mpi,
        no_progress,
        quiet}},
      {"repeat",
       repeat_command,
       "RUN",
       Word::folder,
       Word::none,
       "repeat a run from its config.yaml in another folder",
       {{"--output", Word::folder, "folder for the repeated run (default repeats)", 'o'},
        {"--check", Word::none, "compare results.h5 and networks of the two bit by bit; exit code 6 if they differ"},
        data,
        threads,
        no_progress,
        quiet}},
      {"sweep",
       sweep_command,
       "run FILE [key.path=value...] | status|resume|retry|cancel DIR | ask FILE key.path=value... | tell DIR RUN",
       Word::experiment,
       Word::setting,
       "train all runs that `seeds:` and `sweep:` in a file describe, or runs that another program requests",
       {only(jobs, "run resume retry"),
        {"--fail-fast", Word::none, "stop all runs when one fails; otherwise the others continue", 0,
         "run resume retry"},
        {"--failed", Word::none, "retry: rerun the runs that failed", 0, "retry"},
        {"--plan", Word::none, "run: create the folder for workers and run nothing", 0, "run"},
        {"--dry-run", Word::none, "run: print the runs and write nothing", 'n', "run"},
        {"--until", Word::number, "save a checkpoint of each run after this step and stop it", 0,
         "run resume retry tell"},
        {"--output", Word::folder, "run, ask: folder for the sweep (default sweeps/NAME)", 'o', "run ask"},
        only(threads_per_run, "run resume retry tell"),
        only(patience, "run status resume retry cancel tell"),
        only(data, "run resume retry ask tell"),
        only(json, "status ask tell"),
        only(quiet, "run resume retry tell")},
       "run status resume retry cancel ask tell"},
      {"worker",
       worker_command,
       "DIR",
       Word::folder,
       Word::none,
       "work on a planned sweep alongside other workers, on any host that can access the folder",
       {jobs,
        {"--run", Word::name, "work only on the run with this ID"},
        {"--fail-fast", Word::none, "stop when a run fails; otherwise the others continue"},
        threads_per_run,
        patience,
        data,
        quiet}},
      {"slurm",
       slurm_command,
       "DIR [-- SBATCH_OPTION...]",
       Word::folder,
       Word::text,
       "write job scripts for the runs of a sweep, and print the commands that submit them",
       {{"--array-limit", Word::number, "maximum number of elements in a job array (default 500)"},
        {"--jobs", Word::number, "array elements that run concurrently (default: as many as the site allows)", 'j'},
        {"--time", Word::text, "time limit of a run, as sbatch takes it; a run that reaches it is requeued"},
        {"--threads", Word::number, "cores per run"},
        data}},
      {"reproduce",
       reproduce_command,
       "list|report [NAME...] | NAME...",
       Word::text,
       Word::text,
       "run published experiments and compare their results with the published ones",
       {{"--row", Word::name, "only the row with this name, or else all rows whose names contain it"},
        {"--budget", Word::number, "fraction of the published steps or epochs, such as .1 (default 1)"},
        jobs,
        {"--plan", Word::none, "create the folder for workers and run nothing"},
        {"--dry-run", Word::none, "print the missing runs and write nothing", 'n'},
        {"--output", Word::folder, "folder for the runs (default ~/.local/share/stiefel/reproduction)", 'o'},
        {"--experiments", Word::folder,
         "folder with papers/published.yaml (default: experiments, else the installed one)"},
        {"--timings", Word::file,
         "file that `tools/bench/run epochs --json` wrote (default: results/measured/timings.json next to the "
         "experiments)"},
        {"--to", Word::folder,
         "folder for REPRODUCTION.md, its figures and reproduction.json (default: results/measured next to the "
         "experiments)",
         0, "list report"},
        threads_per_run,
        patience,
        data,
        only(json, "list"),
        quiet},
       "list report"},
      {"evaluate",
       evaluate_command,
       "RUN [key.path=value...]",
       Word::folder,
       Word::setting,
       "measure the network of a run on its test set or on other data",
       {last, step, {"--split", Word::name, "train, validation or test (default test)"}, data, threads, json}},
      {"analyse",
       analyse_command,
       "RUN [task.KEY=value...]",
       Word::folder,
       Word::setting,
       "compute Lyapunov exponents, Jacobians, memory and fixed points of a run's network",
       {{"--split", Word::name, "train, validation or test, whose sequences drive the network (default test)"},
        {"--sequences", Word::number, "number of sequences (default 4)"},
        {"--exponents", Word::number, "largest exponents to compute (default: one for each state, at most 128)"},
        {"--every", Word::number, "steps between two orthonormalizations (default 1)"},
        {"--burn-in", Word::number, "last steps of a sequence that are not averaged (default: a tenth)"},
        {"--memory", Word::none, "also measure how much of past inputs the states tell"},
        {"--fixed-points", Word::number, "also look for fixed points, from this number of states"},
        {"--input", Word::text, "input that is held meanwhile: numbers a,b,... or a symbol (default: zero or none)"},
        {"--classes", Word::number, "also compare the states of the classes, over this number of sequences"},
        last,
        step,
        data,
        json}},
      {"predict",
       predict_command,
       "RUN",
       Word::folder,
       Word::none,
       "print the outputs of a run's network for new sequences as CSV",
       {{"--input", Word::file, "file with the sequences, in a format of the task's data or .npy; -: standard input",
         'i'},
        {"--lengths", Word::file, "with a .npy file: array with the length of each sequence; later steps are ignored"},
        {"--output", Word::file, "CSV file to write (default: standard output)", 'o'},
        {"--raw", Word::none, "print the network's own outputs, before softmax or sigmoid, in the units of the loss"},
        {"--states", Word::none, "also print the state of the network in each row"},
        {"--every-step", Word::none, "print a row for each step also if the task has only one target, after the last"},
        last,
        step,
        data}},
      {"sample",
       sample_command,
       "RUN",
       Word::folder,
       Word::none,
       "generate text with the network of a run that learned a text",
       {{"--length", Word::number, "number of characters, or of words with units: words, to generate (default 500)"},
        {"--temperature", Word::number, "number that divides the logits; 0: always the most likely symbol (default 1)"},
        {"--prime", Word::text, "text that the network reads first (default: a space, or the end of a line)"},
        {"--seed", Word::number, "seed of the random numbers (default 1)"},
        last,
        step,
        data}},
      {"compare",
       compare_command,
       "DIR...",
       Word::folder,
       Word::folder,
       "print a table of the runs in the folders, with one row for runs that differ only in the seed",
       {{"--by", Word::keys, "comma-separated keys that define the rows (default: those in which the runs differ)"},
        {"--metric", Word::name,
         "quantity to compare, such as test_loss or spectrum/recurrent/singular_max (default: the one that selects "
         "their best model)"},
        {"--at", Word::number, "the metric at this length of record.lengths"},
        {"--reach", Word::number,
         "also show how many finished runs reach this value of the metric, and after how many steps and seconds"},
        {"--where", Word::text, "only runs with key=value; also !=, <, <=, >, >=; can be repeated"},
        {"--sort", Word::name,
         "column to sort by: a key of the rows, or mean, std, median, best, n, parameters, steps, seconds"},
        {"--ci", Word::none, "also show the 95% confidence interval of the mean (Student's t over the seeds)"},
        {"--test", Word::text,
         "also test each row against this one, best or KEY=VALUE,..., by Wilcoxon's exact signed-rank test over pairs "
         "of "
         "runs with the same seed"},
        label,
        {"--csv", Word::none, "print CSV, with every digit"},
        json,
        {"--markdown", Word::none, "print Markdown"},
        {"--latex", Word::none, "print LaTeX that uses the booktabs package, with the best mean in bold"}}},
      {"diff",
       diff_command,
       "A B",
       Word::folder,
       Word::folder,
       "print how two runs differ: configuration, provenance, results, bits",
       {json}},
      {"export",
       export_command,
       "RUN",
       Word::folder,
       Word::none,
       "export what a run recorded, or its network, for other programs",
       {{"--csv", Word::none, "one CSV file per table"},
        {"--tensorboard", Word::none, "an event file with the curves"},
        {"--weights", Word::file, "write the matrices of the network to this safetensors file"},
        {"--card", Word::folder, "write the same, its configuration and a README.md about it to this folder"},
        {"--license", Word::text, "license of the network that this README.md states, such as MIT"},
        last,
        step,
        data,
        {"--output", Word::folder, "folder for the files (default exports/NAME/ID)", 'o'}}},
      {"inspect",
       inspect_command,
       "RUN",
       Word::folder,
       Word::none,
       "print parameters, spectrum and orthogonality of a run's network",
       {last, step, {"--output", Word::file, "write the recurrent matrix W to this NumPy file", 'o'}, json}},
      {"report",
       report_command,
       "DIR...",
       Word::folder,
       Word::folder,
       "draw the runs in the folders on one HTML page",
       {{"--output", Word::file, "HTML file to write (default report.html)", 'o'},
        {"--title", Word::text, "title of the page (default: the names of the experiments)"},
        {"--metric", Word::name, "quantity to compare, such as test_loss or spectrum/recurrent/singular_max"},
        {"--by", Word::keys, "comma-separated keys that define the groups (default: those in which the runs differ)"},
        {"--where", Word::text, "only runs with key=value; also !=, <, <=, >, >=; can be repeated"},
        label,
        {"--against", Word::keys, "comma-separated keys to plot the metric against (default: those with numbers)"},
        {"--seed", Word::number, "seed of the figures that show individual runs (default: one that the groups share)"},
        {"--figures", Word::folder, "write each figure and its data to this folder, and the page only with --output"},
        {"--format", Word::name, "format of these figures: svg, pdf, png or pgf (default svg)"},
        {"--style", Word::name, "paper: figures for a paper, with text of 8 pt and lines that gray prints distinguish"},
        {"--width", Word::number, "width of figures for a paper in mm (default 85)"},
        {"--pdf", Word::file, "write the report to this PDF file, and the page only with --output"},
        {"--serve", Word::none,
         "write nothing: serve the report to a browser on this machine, and update it while runs train"},
        {"--port", Word::number, "port of --serve; 0: any free one (default 8000)"}}},
      {"validate",
       validate_command,
       "FILE [key.path=value...]",
       Word::experiment,
       Word::setting,
       "check an experiment and report every error in it",
       {{"--resolved", Word::none, "print every key with its effective value as YAML"},
        {"--origins", Word::none, "print where each value comes from"},
        data}},
      {"describe",
       describe_command,
       "NAME|FILE.so|FILE.py|experiment|KEY",
       Word::described,
       Word::none,
       "print a method's options, a whole experiment, or a part such as train.clip, as YAML to start from",
       {}},
      {"list",
       list_command,
       "",
       Word::none,
       Word::none,
       "list the available methods, and plugin files that cannot be loaded",
       {json}},
      {"schema", schema_command, "", Word::none, Word::none, "print the JSON schema of experiments, for editors", {}},
      {"check",
       check_command,
       "FILE.so|FILE.py|FOLDER... [option=value...]",
       Word::plugin_file,
       Word::plugin_file,
       "test the gradients and claims of a plugin",
       {{"--all", Word::none, "check every plugin that is found"},
        {"--method", Word::method, "check only this method of the file"},
        {"--scalar", Word::name, "check only float32 or float64"},
        {"--seed", Word::number, "check only this seed"},
        {"--seeds", Word::number, "check seeds 1 to N (default: one to three seeds, depending on the check)"},
        {"--shape", Word::text, "check only ROWSxCOLUMNS maps of a parametrisation, complex numbers counted once"},
        {"--limit", Word::number, "time limit in seconds for one call of the plugin (default 60)"},
        data}},
      {"new",
       new_command,
       "ROLE NAME",
       Word::text,
       Word::none,
       "create a plugin to start from; ROLE is map (or parametrisation), cell, task or optimizer",
       {{"--python", Word::none, "a map, task or optimizer in Python"},
        {"--torch", Word::none, "a map in Python with PyTorch, which derives its gradient"}},
       "map parametrisation cell task optimizer"},
      {"bench",
       bench_command,
       "step|kernel FILE [key.path=value...] | complexity [key.path=value...] | limit",
       Word::experiment,
       Word::setting,
       "measure a training step, its matrix product, how the time grows with n and T, or the limits of this machine",
       {{"--threads", Word::number, "worker threads (default: 1 and then 2; complexity: 1)"},
        {"--seconds", Word::number, "seconds per measurement (default 2; complexity: 0.5)"},
        {"--maps", Word::name,
         "complexity: comma-separated recurrent maps, including those of plugins=[FILE.so] (default: householder_16, "
         "householder_n, scaled_cayley, full_unitary, lie_exponential and urnn)"},
        {"--hidden", Word::text, "complexity: values of n, the number of hidden units (default 128,256,512,1024)"},
        {"--length", Word::text, "complexity: values of T, the number of time steps (default 10,100,1000)"},
        data,
        json},
       "step kernel complexity limit"},
      {"data",
       data_command,
       "list|fetch|verify [NAME...]",
       Word::data_set,
       Word::data_set,
       "list data sets, fetch them, or verify the files that are present",
       {{"--yes", Word::none, "fetch: accept the terms of the data sets", 0, "fetch"},
        {"--from", Word::text, "fetch: URL of a folder with the files (default: where they are published)", 0, "fetch"},
        {"--stall", Word::number, "fetch: give up on a download after this many seconds without progress (default 60)",
         0, "fetch"},
        {"--sets", Word::file, "file that describes more data sets, in the format of core/cli/data_sets.json"},
        data,
        only(json, "list verify")},
       "list fetch verify"},
      {"top",
       top_command,
       "DIR...",
       Word::folder,
       Word::folder,
       "watch running experiments: a live table on a terminal, one line per change elsewhere",
       {{"--interval", Word::number, "seconds between updates (default 1; 30 when not on a terminal)"},
        {"--once", Word::none, "print the table once"}}},
      {"completion",
       completion_command,
       "bash|zsh|fish",
       Word::none,
       Word::none,
       "print the completion script for a shell",
       {},
       "bash zsh fish"},
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
      fmt::format("there is no command '{}'{}", name,
                  close.empty() ? "; `stiefel run FILE` trains a network, `stiefel help` lists all commands" : close));
}

std::string Arguments::value(const std::string& option, const std::string& otherwise) const {
  const std::vector<std::string> all = values(option);
  return all.empty() ? otherwise : all.back();
}

std::string Arguments::file(const std::string& option, const std::string& otherwise) const {
  const std::string name = value(option, otherwise);
  if (name == "-") throw Error(fmt::format("{} needs the name of a file; it cannot be standard output", option));
  return name;
}

double Arguments::positive(const std::string& option, double otherwise) const {
  if (!has(option)) return otherwise;
  const std::string text = value(option);
  const std::optional<double> number = number_from<double>(text);
  if (!number || !(*number > 0 && std::isfinite(*number)))
    throw Error(fmt::format("{} must be a positive number, got \"{}\"", option, text));
  return *number;
}

std::vector<std::string> Arguments::values(const std::string& option) const {
  std::vector<std::string> found;
  for (const auto& [name, value] : given)
    if (name == option) found.push_back(value);
  return found;
}

std::vector<std::string> Arguments::words(const std::string& option) const {
  std::vector<std::string> words;
  for (const std::string& list : values(option))
    for (std::string& word : split_at(list, ",")) {
      boost::trim(word);
      if (!word.empty() && std::ranges::find(words, word) == words.end()) words.push_back(word);
    }
  return words;
}

namespace {

const Option& find_option(const Command& command, const std::string& name) {
  std::vector<std::string> names;
  for (const Option& option : command.options) {
    if (name == option.name) return option;
    names.emplace_back(option.name);
  }
  const std::string close = suggestion(name, names);
  const std::string have =
      names.empty() ? "; it has no options" : fmt::format("; its options are {}", fmt::join(names, ", "));
  const bool submits = std::string_view(command.arguments).find("SBATCH_OPTION") != std::string_view::npos;
  throw Error(fmt::format("`stiefel {}` has no option {}{}{}", command.name, name, close.empty() ? have : close,
                          submits ? "; options for sbatch follow `--`, as in `-- --partition=cpu`" : ""));
}

/// Throws Error for options of another action, and for arguments of a command that takes none.
void refuse_misplaced(const Command& command, const Arguments& arguments) {
  if (arguments.positional.empty()) return;
  const std::string& first = arguments.positional.front();
  if (!*command.arguments) throw Error(fmt::format("`stiefel {}` takes no arguments, got '{}'", command.name, first));
  for (const auto& [name, value] : arguments.given) {
    const std::string actions = find_option(command, name).actions;
    if (!actions.empty() && (" " + actions + " ").find(" " + first + " ") == actions.npos)
      throw Error(fmt::format("`stiefel {} {}` has no option {}: it belongs to {}", command.name, first, name,
                              boost::replace_all_copy(actions, " ", ", ")));
  }
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
      if (option.position_key >= 0) {
        arguments.positional.push_back(option.value.front());
        continue;
      }
      const std::string name = "--" + option.string_key;
      const Option& known = find_option(command, name);
      const std::string value = option.value.empty() ? "" : option.value.front();
      if (value.empty() && (known.argument == Word::folder || known.argument == Word::file))
        throw Error(fmt::format("{} needs a value: {}", known.name, known.meaning));
      arguments.given.emplace_back(known.name, value);
    }
  } catch (const options::unknown_option& error) {
    meaning_of(error.get_option_name());
    throw;
  } catch (const options::invalid_command_line_syntax& error) {
    const std::string option = error.get_option_name();
    if (error.kind() == error.extra_parameter) throw Error(fmt::format("{} takes no value", option));
    throw Error(fmt::format("{} needs a value: {}", option, meaning_of(option)));
  }
  refuse_misplaced(command, arguments);
  return arguments;
}

long whole_number(const std::string& text, const std::string& option, long least, long most) {
  const std::optional<long> value = number_from<long>(text);
  if (!value || *value < least || *value > most)
    throw Error(fmt::format("{} must be a whole number from {} to {}, got '{}'", option, least, most, text));
  return *value;
}

long whole_number(const Arguments& arguments, const std::string& option, long otherwise, long least, long most) {
  return arguments.has(option) ? whole_number(arguments.value(option), option, least, most) : otherwise;
}

std::vector<std::string> split_at(const std::string& text, const char* separator) {
  std::vector<std::string> entries;
  boost::split(entries, text, boost::is_any_of(separator));
  return entries;
}

std::string data_directory(const Arguments& arguments) {
  if (arguments.has("--data")) return arguments.value("--data");
  if (const char* directory = std::getenv("STIEFEL_DATA"); directory && *directory) return directory;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::string(cache) + "/stiefel";
  const char* home = std::getenv("HOME");
  return home ? std::string(home) + "/.cache/stiefel" : "";
}

namespace {

const char* placeholder(Word word) {
  switch (word) {
    case Word::none:
    case Word::setting:
    case Word::described:
      return "";
    case Word::experiment:
    case Word::plugin_file:
    case Word::file:
      return " FILE";
    case Word::folder:
      return " DIR";
    case Word::keys:
      return " KEYS";
    case Word::method:
    case Word::data_set:
    case Word::name:
      return " NAME";
    case Word::number:
      return " N";
    case Word::text:
      return " TEXT";
  }
  return "";
}

}  // namespace

std::string option_text(const Option& option) {
  return (option.letter ? fmt::format("-{}, ", option.letter) : "") + option.name + placeholder(option.argument);
}

std::string help_text(const Command& command) {
  std::string text =
      fmt::format("usage: stiefel {}{}{}{}\n\n{}.\n", command.name, command.options.empty() ? "" : " [options]",
                  *command.arguments ? " " : "", command.arguments, capitalised(command.meaning));
  if (!command.options.empty()) text += "\noptions:\n";
  for (const Option& option : command.options) text += fmt::format("  {:<22}{}\n", option_text(option), option.meaning);
  return text;
}

std::string help_text() {
  std::string text = "usage: stiefel COMMAND [options] [arguments]\n\n";
  for (const Command& command : commands()) text += fmt::format("  {:<12}{}\n", command.name, command.meaning);
  return text +
         "\nRun `stiefel help COMMAND` for the options of a command, `stiefel --version` (-v) for the version, and "
         "`stiefel --prefix` "
         "for the folder of this installation.\n";
}

}  // namespace stiefel::cli
