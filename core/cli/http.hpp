// A GET over HTTP. The build chooses its transport: libcurl (http_curl.cpp) or Python's urllib (http_python.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace stiefel::cli {

enum class HttpEnd {
  complete,
  stalled,
  closed,       ///< by the server, before the end
  redirects,    ///< too many
  stopped,      ///< by `take`
  unreachable,  ///< or no HTTP, or a protocol other than http and https
};

struct HttpEnding {
  HttpEnd how;
  std::string reason;  ///< why the server is unreachable
};

constexpr int most_redirects = 10;
constexpr long slowest = 100;  ///< bytes per second; a transfer that is slower for the stall time has stalled

struct HttpGet {
  const std::string& url;  ///< http or https, as is every address that it redirects to
  std::uintmax_t begin;    ///< requests the bytes from this one on, which the server may ignore
  double stall;            ///< seconds
  /// Called before the first bytes with the status of the final response and its Content-Range, or "". Without bytes,
  /// called at most once.
  std::function<void(long status, const std::string& range)> answer;
  /// Called for bytes of the body of the final response, whatever its status. False ends the transfer.
  std::function<bool(std::string_view bytes)> take;
};

/// Throws Error if the transport itself fails.
HttpEnding http_get(const HttpGet& get);

}  // namespace stiefel::cli
