// HTTP by libcurl.
#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <cmath>
#include <memory>

#include <stiefel/error.hpp>

#include "cli/http.hpp"

namespace stiefel::cli {
namespace {

class CurlTransfer {
 public:
  explicit CurlTransfer(const HttpGet& get) : get_(get), curl_(curl_easy_init(), curl_easy_cleanup) {
    if (!curl_) throw Error("cannot initialize libcurl; its installation seems incomplete", Exit::internal);
    set_up();
  }

  HttpEnding run() {
    const CURLcode code = curl_easy_perform(curl_.get());
    tell_answer();
    switch (code) {
      case CURLE_OK:
        return {HttpEnd::complete, ""};
      case CURLE_OPERATION_TIMEDOUT:
        return {HttpEnd::stalled, ""};
      case CURLE_PARTIAL_FILE:
      case CURLE_RECV_ERROR:
      case CURLE_GOT_NOTHING:
        return {HttpEnd::closed, ""};
      case CURLE_TOO_MANY_REDIRECTS:
        return {HttpEnd::redirects, ""};
      default:
        if (stopped_) return {HttpEnd::stopped, ""};
        return {HttpEnd::unreachable, *message_ ? message_ : curl_easy_strerror(code)};
    }
  }

 private:
  template <class T> void set(CURLoption option, T value) {
    if (curl_easy_setopt(curl_.get(), option, value) != CURLE_OK)
      throw Error("libcurl lacks a required option; its version seems too old", Exit::internal);
  }

  void set_up() {
    const long stall = std::max(1L, std::lround(get_.stall));
    set(CURLOPT_URL, get_.url.c_str());
    set(CURLOPT_USERAGENT, "stiefel/" STIEFEL_VERSION);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, long(most_redirects));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, stall);
    set(CURLOPT_LOW_SPEED_LIMIT, slowest);
    set(CURLOPT_LOW_SPEED_TIME, stall);
    set(CURLOPT_ERRORBUFFER, message_);
    set(CURLOPT_WRITEFUNCTION, &CurlTransfer::on_bytes);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_HEADERFUNCTION, &CurlTransfer::on_header);
    set(CURLOPT_HEADERDATA, this);
    if (get_.begin > 0) set(CURLOPT_RANGE, fmt::format("{}-", get_.begin).c_str());  // which libcurl copies
  }

  void tell_answer() {
    if (told_) return;
    told_ = true;
    long status = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    get_.answer(status, range_);
  }

  /// Called for every header of every response, including redirects.
  static std::size_t on_header(const char* bytes, std::size_t, std::size_t size, void* self) {
    constexpr std::string_view name = "content-range:";
    const std::string line(bytes, size);
    std::string& range = static_cast<CurlTransfer*>(self)->range_;
    if (line.starts_with("HTTP/")) range.clear();
    if (boost::istarts_with(line, name, std::locale::classic())) range = boost::trim_copy(line.substr(name.size()));
    return size;
  }
  static std::size_t on_bytes(const char* bytes, std::size_t, std::size_t size, void* self) {
    CurlTransfer& transfer = *static_cast<CurlTransfer*>(self);
    transfer.tell_answer();
    transfer.stopped_ = !transfer.get_.take({bytes, size});
    return transfer.stopped_ ? size + 1 : size;  // another number ends the transfer
  }

  const HttpGet& get_;
  std::unique_ptr<CURL, void (*)(CURL*)> curl_;
  std::string range_;
  char message_[CURL_ERROR_SIZE] = "";
  bool told_ = false, stopped_ = false;
};

}  // namespace

HttpEnding http_get(const HttpGet& get) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw Error("cannot initialize libcurl; its installation seems incomplete", Exit::internal);
  return CurlTransfer(get).run();
}

}  // namespace stiefel::cli
