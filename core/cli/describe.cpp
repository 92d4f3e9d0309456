// `stiefel describe NAME`: a method's options, or a whole experiment, as commented YAML.
#include <fmt/format.h>

#include <cstdio>

#include "base/suggestion.hpp"
#include "config/explain.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {
namespace {

constexpr Role roles[] = {Role::task, Role::cell, Role::parametrisation, Role::optimizer};

/// The methods of that name, in whatever role.
std::vector<const Entry*> methods_named(const Registry& registry, const std::string& name) {
  std::vector<const Entry*> found;
  for (const PluginFile& file : registry.files())
    for (const Entry* entry : file.entries)
      if (entry->name == name) found.push_back(entry);
  return found;
}

[[noreturn]] void refuse(const Registry& registry, const std::string& name) {
  std::vector<std::string> known = {"experiment"};
  for (const Role role : roles)
    for (const std::string& method : registry.names(role)) known.push_back(method);
  const std::string close = suggestion(name, known);
  throw Error(fmt::format("there is nothing named '{}' to describe{}", name,
                          close.empty() ? fmt::format("; choose from {}", fmt::join(known, ", ")) : close),
              Exit::plugin);
}

}  // namespace

int describe_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("describe", words);
  if (arguments.positional.size() != 1)
    throw Error("name one thing to describe: stiefel describe NAME, FILE.so or experiment");
  const std::string& name = arguments.positional.front();
  Registry registry = found_plugins();
  if (name == "experiment") {
    fmt::print("{}", explain_experiment(registry));
    return int(Exit::done);
  }
  std::vector<const Entry*> found;
  if (name.ends_with(".so")) {
    const PluginFile& file = registry.add(name);
    if (!file.unusable.empty()) throw Error(fmt::format("{} is unusable: {}", name, file.unusable), Exit::plugin);
    found = file.entries;
  } else {
    found = methods_named(registry, name);
  }
  if (found.empty()) refuse(registry, name);
  for (std::size_t i = 0; i < found.size(); ++i)
    fmt::print("{}{}", i == 0 ? "" : "---\n", explain_plugin(registry, *found[i]));
  return int(Exit::done);
}

}  // namespace stiefel::cli
