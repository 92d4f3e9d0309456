// Fetches a file over HTTP into a part file, which a later call continues.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace stiefel::cli {

struct Download {
  std::string url;
  std::filesystem::path part;
  std::uintmax_t bytes = 0;                           ///< size of the complete file; no more is read from the server
  double stall = 60;                                  ///< seconds without progress after which it is given up
  std::function<void(std::uintmax_t have)> progress;  ///< now and then
};

/// Fills the part file up to `bytes`. Error says what happened and how far it came: Exit::data for server and network, Exit::exhausted for
/// a full disk, Exit::in_use when another process is at the same file.
void download(const Download& wanted);

}  // namespace stiefel::cli
