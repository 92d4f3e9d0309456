// The table, and reading of a command line by it.
#include "command_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <stiefel/error.hpp>
#include <suggestion.hpp>

namespace stiefel::cli {

const std::vector<Command>& commands() {
  static const Option threads = {"--threads", Word::text, "worker threads; 0: one for each core"};
  static const Option data = {"--data", Word::folder, "folder of the data sets, instead of STIEFEL_DATA or the cache"};
  static const Option json = {"--json", Word::none, "output for programs"};
  static const std::vector<Command> table = {
      {"run",
       "FILE [key.path=value...]",
       Word::experiment,
       Word::key,
       "train the network of an experiment and store what is recorded",
       {{"--dry-run", Word::none, "resolve everything, load the data, do one step, print sizes and times, store nothing"},
        data,
        threads,
        {"--output", Word::folder, "folder of all runs, instead of runs"},
        {"--no-progress", Word::none, "no progress line"},
        {"--quiet", Word::none, "errors only"}}},
      {"validate",
       "FILE [key.path=value...]",
       Word::experiment,
       Word::key,
       "check an experiment and say everything that is wrong with it",
       {{"--resolved", Word::none, "print every key with its effective value as YAML"},
        {"--origins", Word::none, "print where each value comes from"}}},
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
        {"--limit", Word::text, "seconds that the check of a file may take (120)"},
        data}},
      {"new", "ROLE NAME", Word::role, Word::text, "write a plugin to start from", {}},
      {"bench", "step", Word::text, Word::none, "measure seconds per training step", {threads, json}},
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
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      arguments.positional.insert(arguments.positional.end(), words.begin() + std::ptrdiff_t(i) + 1, words.end());
      break;
    }
    if (!word.starts_with("-") || word == "-") {
      arguments.positional.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const Option& option = find_option(command, word.substr(0, equals));
    if (option.argument == Word::none && equals != word.npos) throw Error(fmt::format("{} takes no value", option.name));
    if (option.argument == Word::none || equals != word.npos) {
      arguments.options[option.name] = equals == word.npos ? "" : word.substr(equals + 1);
    } else {
      if (i + 1 == words.size()) throw Error(fmt::format("{} needs a value: {}", option.name, option.meaning));
      arguments.options[option.name] = words[++i];
    }
  }
  return arguments;
}

std::string help_text(const Command& command) {
  std::string text = fmt::format("usage: stiefel {}{}{}{}\n\n{}.\n", command.name, command.options.empty() ? "" : " [options]",
                                 *command.arguments ? " " : "", command.arguments, command.meaning);
  if (!command.options.empty()) text += "\noptions:\n";
  for (const Option& option : command.options)
    text += fmt::format("  {:<22}{}\n", fmt::format("{}{}", option.name, option.argument == Word::none ? "" : " VALUE"), option.meaning);
  return text;
}

std::string help_text() {
  std::string text = "usage: stiefel COMMAND [options] [arguments]\n\n";
  for (const Command& command : commands()) text += fmt::format("  {:<12}{}\n", command.name, command.meaning);
  return text + "\n`stiefel COMMAND --help` says more about one of them.\n";
}

}  // namespace stiefel::cli
