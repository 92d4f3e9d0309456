// Every command of the `stiefel` program with its arguments and options. Help, man pages, argument checks and
// completion use this table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stiefel::cli {

/// What a word on the command line may be, for help and completion.
enum class Word {
  none,
  experiment,
  setting,
  keys,
  plugin_file,
  method,
  described,
  data_set,
  folder,
  file,
  name,
  number,
  text
};

struct Option {
  const char* name;  ///< with its dashes
  Word argument;     ///< Word::none: a switch
  const char* meaning;
  char letter = 0;           ///< short form
  const char* actions = "";  ///< actions of the command that take it, separated by spaces; empty: all
};

struct Command {
  const char* name;
  /// Runs the command with the words after its name. Returns the exit code.
  int (*run)(std::span<const std::string> words);
  const char* arguments;  ///< as shown in help: "FILE [key=value...]"
  Word first, further;    ///< kinds of the first and the other arguments, after the action
  const char* meaning;
  std::vector<Option> options;
  const char* actions = "";  ///< what the first argument may be, separated by spaces
};

const std::vector<Command>& commands();
/// Throws Error with a suggestion if there is no such command.
const Command& find_command(std::string_view name);

struct Arguments {
  std::vector<std::string> positional;
  std::vector<std::pair<std::string, std::string>> given;  ///< options with dashes; a switch has an empty value

  bool has(const std::string& option) const { return !values(option).empty(); }
  /// The value of an option, the last one if there are several.
  std::string value(const std::string& option, const std::string& otherwise = "") const;
  /// The value of an option that names a file to write. Throws Error for "-".
  std::string file(const std::string& option, const std::string& otherwise = "") const;
  /// The value of an option as a number. Throws Error if it is not positive.
  double positive(const std::string& option, double otherwise) const;
  /// The values of an option that can be repeated.
  std::vector<std::string> values(const std::string& option) const;
  /// The words of the comma-separated lists that the option gave, without empty ones.
  std::vector<std::string> words(const std::string& option) const;
};

/// Reads `--option value`, `--option=value` and arguments in any order; after `--` everything is an argument. Throws
/// Error with a suggestion for an option that the command does not have.
Arguments parse_arguments(std::string_view command, std::span<const std::string> words);

/// The whole number given by an option, or by a part of its text. Throws Error if it is not from `least` to `most`.
long whole_number(const Arguments& arguments, const std::string& option, long otherwise, long least = 1,
                  long most = 1'000'000'000);
long whole_number(const std::string& text, const std::string& option, long least = 1, long most = 1'000'000'000);

/// Entries of a list such as a,b,c. Two adjacent separators have an empty entry between them.
std::vector<std::string> split_at(const std::string& text, const char* separator);

/// The folder of the data sets: --data, STIEFEL_DATA or a folder in the cache. Empty if none of them is known.
std::string data_directory(const Arguments& arguments);

/// "-o, --output DIR".
std::string option_text(const Option& option);
/// Help for one command, and for the program.
std::string help_text(const Command& command);
std::string help_text();

}  // namespace stiefel::cli
