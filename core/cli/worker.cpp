// `stiefel worker DIR`: works on a planned sweep alongside any number of other workers.
#include "cli/commands.hpp"
#include "cli/working.hpp"

namespace stiefel::cli {

int worker_command(std::span<const std::string> words) {
  const Arguments arguments = parse_arguments("worker", words);
  if (arguments.positional.size() != 1) throw Error("name the folder of one sweep: stiefel worker DIR");
  return work(SweepFolder(arguments.positional.front()), arguments);
}

}  // namespace stiefel::cli
