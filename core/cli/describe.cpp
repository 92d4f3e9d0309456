// `stiefel describe NAME`: a method's options, a whole experiment or a part of it, as commented YAML.
#include <fmt/format.h>

#include <cstdio>
#include <set>

#include "base/suggestion.hpp"
#include "config/explain.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {
namespace {

std::vector<const Entry*> methods_named(const Registry& registry, const std::string& name) {
  std::vector<const Entry*> found;
  for (const PluginFile& file : registry.files())
    for (const Entry* entry : file.entries)
      if (entry->name == name) found.push_back(entry);
  return found;
}

[[noreturn]] void refuse(const Registry& registry, const std::string& name) {
  if (name == "extends" || name == "seeds" || name == "sweep")
    throw Error(fmt::format("`{}` is a key of a file, not a setting of an experiment; docs/{}.md describes it", name,
                            name == "extends" ? "RUNNING" : "SWEEPS"),
                Exit::plugin);
  const std::string close = suggestion(name, describable(registry));
  throw Error(
      fmt::format(
          "there is nothing named '{}' to describe{}", name,
          close.empty() ? "; `stiefel list` shows the methods, and `stiefel describe experiment` the keys" : close),
      Exit::plugin);
}

}  // namespace

std::vector<std::string> describable(const Registry& registry) {
  std::set<std::string> names = {"experiment"};
  for (const Role role : roles)
    for (const std::string& method : registry.names(role)) names.insert(method);
  for (std::string key : experiment_keys(registry))  // with the sections that contain it
    while (names.insert(key).second && key.rfind('.') != key.npos) key.resize(key.rfind('.'));
  return {names.begin(), names.end()};
}

int describe_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("describe", words);
  if (arguments.positional.size() != 1)
    throw Error(
        "name one thing to describe: stiefel describe NAME, FILE.so, FILE.py, experiment, or a key such as train.clip");
  const std::string& name = arguments.positional.front();
  Registry registry = found_plugins();
  if (name == "experiment") {
    fmt::print("{}", explain_experiment(registry));
    return int(Exit::done);
  }
  std::vector<const Entry*> found;
  std::vector<std::string> options;
  if (is_script(name)) {
    found = methods_of_script(registry, name);
    options = {option_of_script(name)};
  } else if (name.ends_with(".so")) {
    const PluginFile& file = registry.add(name);
    if (!file.unusable.empty()) throw Error(fmt::format("{} is unusable: {}", name, file.unusable), Exit::plugin);
    found = file.entries;
  } else {
    found = methods_named(registry, name);
  }
  if (found.empty()) {
    const std::string text = explain_key(registry, name);
    if (text.empty()) refuse(registry, name);
    fmt::print("{}", text);
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    fmt::print("{}{}", i == 0 ? "" : "---\n", explain_plugin(registry, *found[i], options));
  return int(Exit::done);
}

}  // namespace stiefel::cli
