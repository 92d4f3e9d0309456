// `stiefel completion bash`: a script made from the table of commands; it asks the program itself for methods, keys,
// their values and data sets.
#include <fmt/format.h>

#include <cstdio>

#include <stiefel/error.hpp>
#include "config/explain.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/data_sets.hpp"

namespace stiefel::cli {
namespace {

const char* kind_of(Word word) {
  switch (word) {
    case Word::none:
      return "none";
    case Word::experiment:
      return "experiment";
    case Word::key:
      return "key";
    case Word::plugin_file:
      return "plugin_file";
    case Word::method:
      return "method";
    case Word::data_set:
      return "data_set";
    case Word::folder:
      return "folder";
    case Word::text:
      return "text";
  }
  return "none";
}

constexpr const char* head = R"bash(# Completion of `stiefel` for bash: source <(stiefel completion bash)

_stiefel_words() {  # kind, what is typed so far
  local program="${COMP_WORDS[0]}"
  case "$1" in
    experiment) compgen -f -X '!*.y*ml' -- "$2"; compgen -d -- "$2" ;;
    key) compgen -S = -W "$("$program" completion keys 2>/dev/null)" -- "$2" ;;
    value) compgen -W "$("$program" completion values "$3" 2>/dev/null)" -- "$2" ;;
    plugin_file) compgen -f -X '!*.so' -- "$2"; compgen -d -- "$2" ;;
    method) compgen -W "experiment $("$program" completion methods 2>/dev/null)" -- "$2" ;;
    data_set) compgen -W "$("$program" completion data_sets 2>/dev/null)" -- "$2" ;;
    folder) compgen -d -- "$2" ;;
  esac
}

_stiefel_complete() {
  mapfile -t COMPREPLY < <(_stiefel_words "$@")
  case "$1" in
    experiment|plugin_file|folder) compopt -o filenames 2>/dev/null ;;
    key) compopt -o nospace 2>/dev/null ;;
  esac
}

_stiefel() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local options="" valued="" actions="" first=none further=none number=0 i
  COMPREPLY=()
)bash";

// bash takes KEY=VALUE for three words.
constexpr const char* tail = R"bash(
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
  std::string names, cases;
  for (const Command& command : commands()) {
    names += (names.empty() ? "" : " ") + std::string(command.name);
    std::string options = "--help", valued;
    for (const Option& option : command.options) {
      options += std::string(" ") + option.name;
      if (option.argument == Word::none) continue;
      valued += fmt::format(" {}:{}", option.name, kind_of(option.argument));
      if (option.letter) valued += fmt::format(" -{}:{}", option.letter, kind_of(option.argument));
    }
    cases += fmt::format("    {}) options=\"{}\" valued=\"{}\" actions=\"{}\" first={} further={} ;;\n", command.name,
                         options, valued, command.actions, kind_of(command.first), kind_of(command.further));
  }
  std::string script = head;
  script += fmt::format(
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    mapfile -t COMPREPLY < <(compgen -W \"{0}\" -- \"$current\")\n    "
      "return\n  fi\n",
      names + " help");
  script += "  case \"${COMP_WORDS[1]}\" in\n    help) actions=\"" + names + "\" ;;\n" + cases + "  esac";
  return script + tail;
}

void print_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("{}\n", line);
}

}  // namespace

int completion_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("completion", words);
  const std::vector<std::string>& given = arguments.positional;
  const std::string what = given.empty() ? "" : given.front();
  if (what == "bash") {
    fmt::print("{}", bash_completion());
  } else if (what == "methods") {
    const Registry registry;
    for (const Role role : {Role::task, Role::cell, Role::parametrisation, Role::optimizer})
      print_lines(registry.names(role));
  } else if (what == "keys") {
    print_lines(experiment_keys(Registry()));
  } else if (what == "values" && given.size() == 2) {
    print_lines(experiment_values(Registry(), given[1]));
  } else if (what == "data_sets") {
    for (const DataSet& set : load_data_sets("")) fmt::print("{}\n", set.name);
  } else {
    throw Error("completion is available for bash: source <(stiefel completion bash)");
  }
  return int(Exit::done);
}

}  // namespace stiefel::cli
