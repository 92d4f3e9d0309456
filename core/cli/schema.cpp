// `stiefel schema`: prints the JSON schema of experiments. An editor uses it for every file that begins with
//   # yaml-language-server: $schema=stiefel.schema.json
#include <fmt/format.h>

#include <cstdio>

#include "config/json_schema.hpp"

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/running.hpp"

namespace stiefel::cli {

int schema_command(std::span<const std::string> words) {
  if (!parse_arguments("schema", words).positional.empty()) throw Error("`stiefel schema` takes no arguments");
  fmt::print("{}", json_schema(found_plugins()));
  return int(Exit::done);
}

}  // namespace stiefel::cli
