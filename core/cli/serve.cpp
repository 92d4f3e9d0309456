// One request after the other: the only reader is the user's own browser.
#include "cli/serve.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>

#include <chrono>
#include <memory>

#include <stiefel/error.hpp>

namespace stiefel::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Response = http::response<http::string_body>;

constexpr int seconds_between_reloads = 5;

Response text(http::status status, const std::string& sentence) {
  Response response{status, 11};
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  response.body() = sentence + "\n";
  return response;
}

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::ip::tcp::socket socket, std::uint16_t port, const std::function<Page()>& page)
      : stream_(std::move(socket)), port_(port), page_(page) {
    parser_.header_limit(8192);
    parser_.body_limit(0);
  }

  void start() {
    stream_.expires_after(std::chrono::seconds(10));
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) { self->answer(error); });
  }

 private:
  void answer(beast::error_code error) {
    if (error) return;
    response_ = response_to(parser_.get());
    response_.set(http::field::server, "stiefel");
    response_.set(http::field::cache_control, "no-store");
    response_.keep_alive(false);
    response_.prepare_payload();
    if (parser_.get().method() == http::verb::head) response_.body().clear();
    stream_.expires_after(std::chrono::seconds(30));
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code, std::size_t) {
      beast::error_code ignored;
      self->stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    });
  }

  /// Under another name the request comes from a page of somebody else.
  bool own_name(const http::request<http::empty_body>& request) const {
    const auto host = request[http::field::host];
    const auto is = [&](const char* name) {
      return host == fmt::format("{}:{}", name, port_) || (port_ == 80 && host == name);
    };
    return is("127.0.0.1") || is("localhost");
  }

  Response response_to(const http::request<http::empty_body>& request) const {
    if (!own_name(request)) return text(http::status::forbidden, "this report is for this machine only");
    if (request.method() != http::verb::get && request.method() != http::verb::head)
      return text(http::status::method_not_allowed, "this server answers only GET and HEAD");
    if (request.target() != "/") return text(http::status::not_found, "there is only the report, at /");
    try {
      const Page page = page_();
      Response response{http::status::ok, 11};
      response.set(http::field::content_type, "text/html; charset=utf-8");
      if (page.growing) response.set("Refresh", std::to_string(seconds_between_reloads));
      response.body() = page.html;
      return response;
    } catch (const std::exception& error) {
      Response response = text(http::status::internal_server_error, error.what());
      response.set("Refresh", std::to_string(seconds_between_reloads));
      return response;
    }
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  Response response_;
  std::uint16_t port_;
  const std::function<Page()>& page_;
};

}  // namespace

void serve(std::uint16_t port, const std::function<Page()>& page,
           const std::function<void(const std::string&)>& started) {
  asio::io_context context;
  asio::ip::tcp::acceptor acceptor(context);
  const asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
  try {
    acceptor.open(endpoint.protocol());
    acceptor.set_option(asio::ip::tcp::acceptor::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen();
  } catch (const boost::system::system_error& error) {
    throw Error(fmt::format("port {} of 127.0.0.1 cannot be used: {}; choose another with --port", port,
                            error.code().message()));
  }
  const std::uint16_t taken = acceptor.local_endpoint().port();
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](beast::error_code, int) { context.stop(); });
  asio::steady_timer pause(context);
  const std::function<void()> accept = [&] {
    acceptor.async_accept([&](beast::error_code error, asio::ip::tcp::socket socket) {
      if (!error) {
        std::make_shared<Connection>(std::move(socket), taken, page)->start();
        return accept();
      }
      pause.expires_after(std::chrono::seconds(1));  // too many open files, for example
      pause.async_wait([&](beast::error_code) { accept(); });
    });
  };
  accept();
  started(fmt::format("http://127.0.0.1:{}/", taken));
  context.run();
}

}  // namespace stiefel::cli
