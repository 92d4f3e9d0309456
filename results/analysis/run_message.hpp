/// Runs as bytes, for the pipe between the process that reads result files and the one that requests them.
///
/// Numbers are 8 bytes in the machine's order; texts and lists begin with their length. The receiver trusts no length.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "results/analysis/run_data.hpp"

namespace stiefel {

std::string encode(const RunRequest& request);
std::string encode(const RunData& run);
/// Throws Error (Exit::damaged) unless the bytes are exactly one message.
RunRequest decode_request(std::string_view bytes);
RunData decode_run(std::string_view bytes);

}  // namespace stiefel
