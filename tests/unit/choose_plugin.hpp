/// A plugin with options as in a YAML file.
#pragma once

#include <string>
#include <string_view>

#include "config/config_schema.hpp"

namespace stiefel {

/// `options`: a mapping without `plugin:`; the other options have their defaults.
inline PluginChoice choose_plugin(const Entry& entry, std::string_view options = "",
                                  const std::string& name = "options") {
  Problems problems;
  const std::optional<Node> tree = parse_yaml(options, name, problems);
  problems.raise();
  Reading reading{nullptr, &problems};
  ConfigSchema schema(reading, entry.name, &*tree, {name, 1, 1});
  PluginChoice choice;
  schema.describe_options(choice, entry);
  schema.finish();
  problems.raise();
  return choice;
}

}  // namespace stiefel
