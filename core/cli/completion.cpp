// `stiefel completion bash`: a script made from the table of commands; it asks the program itself for methods and keys.
#include <fmt/format.h>

#include <cstdio>

#include <stiefel/error.hpp>
#include "config/explain.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"

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
    case Word::role:
      return "role";
    case Word::shell:
      return "shell";
    case Word::folder:
      return "folder";
    case Word::text:
      return "text";
  }
  return "none";
}

constexpr const char* head = R"bash(# Completion of `stiefel` for bash: source <(stiefel completion bash)

_stiefel_words() {  # kind, what is typed so far
  case "$1" in
    experiment) compgen -f -X '!*.y*ml' -- "$2"; compgen -d -- "$2" ;;
    key) compgen -S = -W "$("${COMP_WORDS[0]}" completion keys 2>/dev/null)" -- "$2" ;;
    plugin_file) compgen -f -X '!*.so' -- "$2"; compgen -d -- "$2" ;;
    method) compgen -W "experiment $("${COMP_WORDS[0]}" completion methods 2>/dev/null)" -- "$2" ;;
    role) compgen -W "parametrisation cell task optimizer" -- "$2" ;;
    shell) compgen -W "bash" -- "$2" ;;
    folder) compgen -d -- "$2" ;;
  esac
}

_stiefel_complete() {
  mapfile -t COMPREPLY < <(_stiefel_words "$1" "$2")
  case "$1" in
    experiment|plugin_file|folder) compopt -o filenames 2>/dev/null ;;
    key) compopt -o nospace 2>/dev/null ;;
  esac
}

_stiefel() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local options="" valued="" first=none further=none number=0 word
  COMPREPLY=()
)bash";

constexpr const char* tail = R"bash(
  if [[ " $valued " =~ " $previous:"([a-z_]*)" " ]]; then
    _stiefel_complete "${BASH_REMATCH[1]}" "$current"
    return
  fi
  if [[ "$current" == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
    return
  fi
  for word in "${COMP_WORDS[@]:2:COMP_CWORD-1}"; do
    [[ "$word" == -* ]] || number=$((number + 1))
  done
  [ "$number" -le 1 ] || first="$further"
  _stiefel_complete "$first" "$current"
}
complete -F _stiefel stiefel
)bash";

}  // namespace

std::string bash_completion() {
  std::string names, cases;
  for (const Command& command : commands()) {
    names += (names.empty() ? "" : " ") + std::string(command.name);
    std::string options = "--help", valued;
    for (const Option& option : command.options) {
      options += std::string(" ") + option.name;
      if (option.argument != Word::none)
        valued += fmt::format("{}{}:{}", valued.empty() ? "" : " ", option.name, kind_of(option.argument));
    }
    cases += fmt::format("    {}) options=\"{}\" valued=\"{}\" first={} further={} ;;\n", command.name, options, valued,
                         kind_of(command.first), kind_of(command.further));
  }
  std::string script = head;
  script += fmt::format(
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    mapfile -t COMPREPLY < <(compgen -W \"{}\" -- \"$current\")\n    "
      "return\n  fi\n",
      names);
  script += "  case \"${COMP_WORDS[1]}\" in\n" + cases + "  esac";
  return script + tail;
}

int completion_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("completion", words);
  const std::string what = arguments.positional.size() == 1 ? arguments.positional.front() : "";
  if (what == "bash") {
    fmt::print("{}", bash_completion());
  } else if (what == "methods") {
    const Registry registry;
    for (const Role role : {Role::task, Role::cell, Role::parametrisation, Role::optimizer})
      for (const std::string& name : registry.names(role)) fmt::print("{}\n", name);
  } else if (what == "keys") {
    for (const std::string& key : experiment_keys(Registry())) fmt::print("{}\n", key);
  } else {
    throw Error("completion is available for bash: source <(stiefel completion bash)");
  }
  return int(Exit::done);
}

}  // namespace stiefel::cli
