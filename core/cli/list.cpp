// `stiefel list`: every method that can be had, and the plugin files that cannot be used.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <registry.hpp>

#include "command_table.hpp"
#include "commands.hpp"

namespace stiefel::cli {

int list_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("list", words);
  const Registry registry;
  nlohmann::json rows = nlohmann::json::array();
  for (const PluginFile& file : registry.files()) {
    for (const Entry* entry : file.entries) {
      rows.push_back({{"name", entry->name},
                      {"role", name_of(entry->role)},
                      {"version", file.version},
                      {"file", file.path.string()},
                      {"meaning", entry->meaning}});
      if (!arguments.has("--json"))
        fmt::print("{:<22} {:<16} {:<8} {}\n", entry->name, name_of(entry->role), file.version, file.path.string());
    }
    if (file.unusable.empty()) continue;
    rows.push_back({{"file", file.path.string()}, {"unusable", file.unusable}});
    if (!arguments.has("--json")) fmt::print("{}: unusable: {}\n", file.path.string(), file.unusable);
  }
  if (arguments.has("--json")) fmt::print("{}\n", rows.dump(2));
  for (const std::string& warning : registry.warnings()) fmt::print(stderr, "warning: {}\n", warning);
  return int(Exit::done);
}

}  // namespace stiefel::cli
