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
  double stall = 60;                                  ///< seconds without progress after which the download fails
  std::function<void(std::uintmax_t have)> progress;  ///< called from time to time
};

/// Fills the part file up to `bytes`. Throws Error that says what happened and how far it got: Exit::data for server,
/// network and the means to fetch, Exit::exhausted for a full disk, Exit::in_use if another process is fetching the same
/// file.
void download(const Download& wanted);

}  // namespace stiefel::cli
