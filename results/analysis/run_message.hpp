/// Runs as bytes, for the pipe between the process that reads result files and the one that asked for them.
///
/// Numbers are 8 bytes in the machine's order, texts and lists begin with their length. The receiver trusts no length.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "results/analysis/run_data.hpp"

namespace stiefel {

std::string encode(const RunRequest& request);
std::string encode(const RunData& run);
/// Error (Exit::damaged) when the bytes are not a whole message and nothing more.
RunRequest decode_request(std::string_view bytes);
RunData decode_run(std::string_view bytes);

}  // namespace stiefel
