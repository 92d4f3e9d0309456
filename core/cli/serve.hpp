// Serves a page to browsers on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace stiefel::cli {

struct Page {
  std::string html;
  bool growing = false;  // whether the browser asks again after some seconds
};

/// Serves page() at http://127.0.0.1:PORT/ until SIGINT or SIGTERM; port 0 means any free one. Calls `started` with the
/// address once it listens. Refuses requests for anything else, or under another host's name. Throws Error if the port
/// cannot be used.
void serve(std::uint16_t port, const std::function<Page()>& page,
           const std::function<void(const std::string&)>& started);

}  // namespace stiefel::cli
