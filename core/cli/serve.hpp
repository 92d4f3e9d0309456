// A page for browsers on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace stiefel::cli {

struct Page {
  std::string html;
  bool growing = false;  // the browser is to ask again after some seconds
};

/// Serves page() at http://127.0.0.1:PORT/ until SIGINT or SIGTERM; port 0: a free one. Calls started with the address
/// once it listens. Requests for anything else, or under another host's name, are refused. Throws Error when the port
/// cannot be used.
void serve(std::uint16_t port, const std::function<Page()>& page,
           const std::function<void(const std::string&)>& started);

}  // namespace stiefel::cli
