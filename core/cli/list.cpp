// `stiefel list`: the available methods, and the plugin files that cannot be used.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "host/registry.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {

int list_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("list", words);
  const Registry registry = found_plugins();
  nlohmann::json rows = nlohmann::json::array();
  for (const Role role : roles)
    for (const PluginFile& file : registry.files())
      for (const Entry* entry : file.entries) {
        if (entry->role != role) continue;
        const bool used = &registry.find(role, entry->name) == entry;
        rows.push_back({{"name", entry->name},
                        {"role", name_of(role)},
                        {"version", file.version},
                        {"file", file.path.string()},
                        {"used", used},
                        {"meaning", entry->meaning}});
        if (arguments.has("--json")) continue;
        const std::string from =
            is_built_in(file.path) ? "" : fmt::format(" [{}, version {}]", file.path.string(), file.version);
        fmt::print("{:<22} {:<16} {}{}\n", entry->name, name_of(role), printable(entry->meaning + from),
                   used ? "" : " (not used)");
      }
  for (const PluginFile& file : registry.files()) {
    if (file.unusable.empty()) continue;
    rows.push_back({{"file", file.path.string()}, {"unusable", file.unusable}});
    if (!arguments.has("--json"))
      fmt::print("{}\n", printable(fmt::format("{}: unusable: {}", file.path.string(), file.unusable)));
  }
  if (arguments.has("--json")) fmt::print("{}\n", rows.dump(2, ' ', true, nlohmann::json::error_handler_t::replace));
  return int(Exit::done);
}

}  // namespace stiefel::cli
