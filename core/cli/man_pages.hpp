// Manual pages in roff: stiefel(1) and stiefel-COMMAND(1).
#pragma once

#include <string>

#include "cli/command_table.hpp"

namespace stiefel::cli {

std::string man_page();
std::string man_page(const Command& command);

}  // namespace stiefel::cli
