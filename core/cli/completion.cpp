// `stiefel completion bash|zsh|fish`: scripts made from the table of commands; they ask the program itself for methods,
// keys, their values and data sets. `stiefel completion files DIR` writes them and the man pages for an installation.
#include <fmt/format.h>

#include <boost/algorithm/string.hpp>
#include <cstdio>

#include <stiefel/error.hpp>
#include "base/atomic_file.hpp"
#include "config/explain.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/data_sets.hpp"
#include "cli/man_pages.hpp"

namespace stiefel::cli {
namespace {

/// What a shell completes for a Word.
struct Completed {
  const char* kind;  ///< name of the kind in our script for bash; message for zsh
  const char* zsh;   ///< after a message in a specification of _arguments; after a blank it gets no further arguments
  const char* fish;  ///< arguments of `complete`
};

const Completed& completed(Word word) {
  static constexpr Completed all[] = {
      // in the order of Word
      {"none", " ", ""},
      {"experiment", "_files -g \"*.y(|a)ml\"", " -k -a '(__fish_complete_suffix .yaml)'"},
      {"key", " _stiefel_key", " -a '(__stiefel_key)'"},  // setting
      {"keys", " _stiefel_asked keys", " -a '(__stiefel_asked keys)'"},
      {"plugin_file", "_files -g \"*.so\"", " -k -a '(__fish_complete_suffix .so)'"},
      {"method", " _stiefel_asked methods", " -a '(__stiefel_asked methods)'"},
      {"described", " _stiefel_asked described", " -a '(__stiefel_asked described)'"},
      {"data_set", " _stiefel_asked data_sets", " -a '(__stiefel_asked data_sets)'"},
      {"folder", "_files -/", " -a '(__fish_complete_directories)'"},
      {"file", "_files", " -F"},
      {"text", " ", ""},  // name
      {"text", " ", ""},  // number
      {"text", " ", ""},  // text
  };
  static_assert(std::size(all) == std::size_t(Word::text) + 1);
  return all[std::size_t(word)];
}

std::string command_names(const std::vector<Command>& all) {
  std::string names;
  for (const Command& command : all) names += std::string(command.name) + " ";
  return names + "help";
}

constexpr const char* bash_head = R"bash(# Completion of `stiefel` for bash: source <(stiefel completion bash)

_stiefel_words() {  # kind, what is typed so far
  local program="${COMP_WORDS[0]}"
  case "$1" in
    experiment) compgen -f -X '!*.y*ml' -- "$2"; compgen -d -- "$2" ;;
    key) compgen -S = -W "$("$program" completion keys 2>/dev/null)" -- "$2" ;;
    value) compgen -W "$("$program" completion values "$3" 2>/dev/null)" -- "$2" ;;
    plugin_file) compgen -f -X '!*.so' -- "$2"; compgen -d -- "$2" ;;
    keys|described) compgen -W "$("$program" completion "$1" 2>/dev/null)" -- "$2" ;;
    method|data_set) compgen -W "$("$program" completion "$1s" 2>/dev/null)" -- "$2" ;;
    folder) compgen -d -- "$2" ;;
    file) compgen -f -- "$2" ;;
  esac
}

_stiefel_complete() {
  mapfile -t COMPREPLY < <(_stiefel_words "$@")
  case "$1" in
    experiment|plugin_file|folder|file) compopt -o filenames 2>/dev/null ;;
    key) compopt -o nospace 2>/dev/null ;;
  esac
}

_stiefel() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local options="" valued="" actions="" first=none further=none number=0 i
  COMPREPLY=()
)bash";

// bash splits KEY=VALUE into three words.
constexpr const char* bash_tail = R"bash(
  local assigned=""
  if [[ "$current" == "=" ]]; then
    assigned="$previous" current=""
  elif [[ "$previous" == "=" ]]; then
    assigned="${COMP_WORDS[COMP_CWORD-2]}"
  fi
  if [[ " $valued " =~ " ${assigned:-$previous}:"([a-z_]*)" " ]]; then
    _stiefel_complete "${BASH_REMATCH[1]}" "$current"
  elif [[ -n "$assigned" ]]; then
    _stiefel_complete value "$current" "$assigned"
  elif [[ "$current" == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  else
    for ((i = 2; i <= COMP_CWORD; ++i)); do
      case "${COMP_WORDS[i]}" in
        "=") ((++i)) ;;
        -*) [[ " $valued " != *" ${COMP_WORDS[i]}:"* || "${COMP_WORDS[i+1]}" == "=" ]] || ((++i)) ;;
        *) ((++number)) ;;
      esac
    done
    [ -z "$actions" ] || ((--number))
    if [ "$number" -eq 0 ]; then
      mapfile -t COMPREPLY < <(compgen -W "$actions" -- "$current")
    elif [ "$number" -eq 1 ]; then
      _stiefel_complete "$first" "$current"
    else
      _stiefel_complete "$further" "$current"
    fi
  fi
}
complete -F _stiefel stiefel
)bash";

std::string bash_completion() {
  std::string cases;
  const std::string names = command_names(commands());
  for (const Command& command : commands()) {
    std::string options = "--help", valued;
    for (const Option& option : command.options) {
      options += std::string(" ") + option.name;
      if (option.argument == Word::none) continue;
      valued += fmt::format(" {}:{}", option.name, completed(option.argument).kind);
      if (option.letter) valued += fmt::format(" -{}:{}", option.letter, completed(option.argument).kind);
    }
    cases +=
        fmt::format("    {}) options=\"{}\" valued=\"{}\" actions=\"{}\" first={} further={} ;;\n", command.name,
                    options, valued, command.actions, completed(command.first).kind, completed(command.further).kind);
  }
  std::string script = bash_head;
  script += fmt::format(
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    mapfile -t COMPREPLY < <(compgen -W \"{0}\" -- \"$current\")\n    "
      "return\n  fi\n",
      names);
  script += "  case \"${COMP_WORDS[1]}\" in\n    help) actions=\"" + names + "\" ;;\n" + cases + "  esac";
  return script + bash_tail;
}

/// A text within single quotes of zsh.
std::string zsh_quoted(std::string text) {
  boost::replace_all(text, "'", "'\\''");
  return "'" + text + "'";
}

/// An explanation in a specification of _arguments.
std::string zsh_explained(const char* meaning) {
  std::string text;
  for (const char* c = meaning; *c; ++c) text += std::string(*c == '[' || *c == ']' || *c == '\\' ? "\\" : "") + *c;
  return "[" + text + "]";
}

constexpr const char* zsh_head = R"zsh(#compdef stiefel
# Completion of `stiefel` for zsh, in a file _stiefel of a folder in $fpath

_stiefel_asked() {  # what the program itself knows
  compadd -- ${(f)"$("$program" completion "$@" 2>/dev/null)"}
}

_stiefel_key() {
  if compset -P 1 '*='; then
    _stiefel_asked values "${IPREFIX%=}"
  else
    compadd -qS = -- ${(f)"$("$program" completion keys 2>/dev/null)"}
  fi
}

_stiefel() {
  local program="$words[1]" command="$words[2]"
  local -a commands
)zsh";

std::string zsh_completion() {
  std::string described, cases;
  for (const Command& command : commands()) {
    described += "    " + zsh_quoted(fmt::format("{}:{}", command.name, command.meaning)) + "\n";
    cases += fmt::format("    {}) _arguments -s -S '(-h --help)'{{-h,--help}}'[print the options]'", command.name);
    for (const Option& option : command.options) {
      const bool valued = option.argument != Word::none;
      const std::string shown = zsh_quoted(
          zsh_explained(option.meaning) +
          (valued ? fmt::format(":{}:{}", completed(option.argument).kind, completed(option.argument).zsh) : ""));
      const std::string name = std::string(option.name) + (valued ? "=" : "");
      cases += option.letter
                   ? fmt::format(" \\\n      '*'{{-{}{},{}}}{}", option.letter, valued ? "+" : "", name, shown)
                   : fmt::format(" \\\n      '*{}'{}", name, shown);
    }
    int number = 1;
    if (*command.actions) cases += fmt::format(" \\\n      '{}:action:({})'", number++, command.actions);
    if (command.first != Word::none)
      cases += " \\\n      " +
               zsh_quoted(fmt::format("{}:{}:{}", number, completed(command.first).kind, completed(command.first).zsh));
    if (command.further != Word::none)
      cases += " \\\n      " +
               zsh_quoted(fmt::format("*:{}:{}", completed(command.further).kind, completed(command.further).zsh));
    cases += " ;;\n";
  }
  std::string script = zsh_head;
  script += fmt::format(
      "  if (( CURRENT == 2 )); then\n    commands=(\n{}    'help:print the options of a command'\n    )\n"
      "    _describe command commands\n    return\n  fi\n  shift words\n  (( CURRENT-- ))\n  case \"$command\" in\n"
      "    help) _arguments '1:command:({})' ;;\n{}  esac\n}}\n\n_stiefel \"$@\"\n",
      described, command_names(commands()), cases);
  return script;
}

/// A text within single quotes of fish.
std::string fish_quoted(std::string text) {
  boost::replace_all(text, "\\", "\\\\");
  boost::replace_all(text, "'", "\\'");
  return "'" + text + "'";
}

constexpr const char* fish_head = R"fish(# Completion of `stiefel` for fish: stiefel completion fish | source

function __stiefel_asked  # what the program itself knows
    set -l words (commandline -opc)
    $words[1] completion $argv 2>/dev/null
end

function __stiefel_key
    set -l word (commandline -ct)
    if string match -q '*=*' -- $word
        set -l key (string split -m 1 = -- $word)[1]
        for value in (__stiefel_asked values $key)
            echo $key=$value
        end
    else
        for key in (__stiefel_asked keys)
            echo $key=
        end
    end
end

function __stiefel_at  # COMMAND [NUMBER [more]]: is this argument of the command typed, or a later one
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]; or return 1
    test (count $argv) -gt 1; or return 0
    set -l valued (__stiefel_valued $argv[1])
    set -l number 1
    set -l skip no
    for word in $words[3..-1]
        if test $skip = yes
            set skip no
        else if contains -- $word $valued
            set skip yes
        else if not string match -q -- '-*' $word
            set number (math $number + 1)
        end
    end
    if set -q argv[3]
        test $number -ge $argv[2]
    else
        test $number -eq $argv[2]
    end
end

complete -c stiefel -f
complete -c stiefel -n 'test (count (commandline -opc)) -eq 1' -a help -d 'print the options of a command'
)fish";

std::string fish_completion() {
  std::string script = fish_head,
              valued = "\nfunction __stiefel_valued  # COMMAND: its options that take a value\n    switch $argv[1]\n";
  const auto line = [&](const std::string& condition, const std::string& rest) {
    script += fmt::format("complete -c stiefel -n '{}'{}\n", condition, rest);
  };
  line("__stiefel_at help 1", fmt::format(" -a '{}'", command_names(commands())));
  for (const Command& command : commands()) {
    const std::string at = fmt::format("__stiefel_at {}", command.name);
    line("test (count (commandline -opc)) -eq 1",
         fmt::format(" -a {} -d {}", command.name, fish_quoted(command.meaning)));
    line(at, " -l help -s h -d 'print the options'");
    std::string taking;
    for (const Option& option : command.options) {
      const std::string letter = option.letter ? fmt::format(" -s {}", option.letter) : "";
      line(at, fmt::format(" -l {}{}{}{} -d {}", option.name + 2, letter,
                           option.argument == Word::none   ? ""
                           : option.argument == Word::file ? " -r"
                                                           : " -x",
                           completed(option.argument).fish, fish_quoted(option.meaning)));
      if (option.argument == Word::none) continue;
      taking += std::string(" ") + option.name;
      if (option.letter) taking += fmt::format(" -{}", option.letter);
    }
    if (!taking.empty())
      valued += fmt::format("        case {}\n            string split ' ' -- '{}'\n", command.name, taking.substr(1));
    int number = 1;
    if (*command.actions) line(fmt::format("{} {}", at, number++), fmt::format(" -a '{}'", command.actions));
    if (command.first != Word::none) line(fmt::format("{} {}", at, number), completed(command.first).fish);
    if (command.further != Word::none) line(fmt::format("{} {} more", at, number + 1), completed(command.further).fish);
  }
  return script + valued + "    end\nend\n";
}

/// Writes scripts and man pages to a folder as an installation has them in share.
void write_files(const std::filesystem::path& folder) {
  const auto write = [&](const std::filesystem::path& file, const std::string& text) {
    create_directories((folder / file).parent_path());
    replace_when_new(folder / file, text);
  };
  write("bash-completion/completions/stiefel", bash_completion());
  write("zsh/vendor-completions/_stiefel", zsh_completion());
  write("fish/vendor_completions.d/stiefel.fish", fish_completion());
  write("man/man1/stiefel.1", man_page());
  for (const Command& command : commands())
    write(fmt::format("man/man1/stiefel-{}.1", command.name), man_page(command));
}

void print_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("{}\n", line);
}

}  // namespace

int completion_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("completion", words);
  const std::vector<std::string>& given = arguments.positional;
  const std::string what = given.empty() ? "" : given.front();
  if (given.size() > 1 && what != "files" && what != "values")
    throw Error(fmt::format("`stiefel completion {}` takes nothing else, got '{}'", what, given[1]));
  if (what == "bash") {
    fmt::print("{}", bash_completion());
  } else if (what == "zsh") {
    fmt::print("{}", zsh_completion());
  } else if (what == "fish") {
    fmt::print("{}", fish_completion());
  } else if (what == "files" && given.size() == 2) {
    write_files(given[1]);
  } else if (what == "methods") {
    const Registry registry;
    for (const Role role : roles) print_lines(registry.names(role));
  } else if (what == "described") {
    print_lines(describable(Registry()));
  } else if (what == "keys") {
    print_lines(experiment_keys(Registry()));
  } else if (what == "values" && given.size() == 2) {
    print_lines(experiment_values(Registry(), given[1]));
  } else if (what == "data_sets") {
    for (const DataSet& set : load_data_sets("")) fmt::print("{}\n", set.name);
  } else {
    throw Error("choose a shell: stiefel completion bash, zsh or fish");
  }
  return int(Exit::done);
}

}  // namespace stiefel::cli
