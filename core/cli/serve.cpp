#include "cli/serve.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <set>

#include <stiefel/error.hpp>

namespace stiefel::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds, std::chrono::seconds;

constexpr int seconds_between_reloads = 5;
constexpr seconds longest_request{10}, longest_answer{30};
constexpr std::uint32_t longest_header = 8192;
constexpr std::size_t most_connections = 256;

volatile std::sig_atomic_t stopped = 0;

using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

/// Whether a request names this machine; otherwise it comes from somebody else's page. The port may be that of a
/// tunnel.
bool own_name(beast::string_view host) {
  const beast::string_view name = host.substr(0, host.find(':'));
  return name == "127.0.0.1" || name == "localhost";
}

void set_text(Response& response, http::status status, const std::string& sentence) {
  response.result(status);
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  response.body() = sentence + "\n";
}

void answer(const Request& request, Response& response, const std::function<Page()>& page) {
  const auto reload = [&] { response.set("Refresh", std::to_string(seconds_between_reloads)); };
  response.set(http::field::cache_control, "no-store");
  if (!own_name(request[http::field::host]))
    return set_text(response, http::status::forbidden, "this report is for this machine only");
  if (request.method() != http::verb::get && request.method() != http::verb::head)
    return set_text(response, http::status::method_not_allowed, "this server answers only GET and HEAD");
  if (request.target() != "/") return set_text(response, http::status::not_found, "there is only the report, at /");
  if (request.count(http::field::range) > 0)
    return set_text(response, http::status::range_not_satisfiable, "this server sends only whole pages");
  try {
    Page made = page();
    if (made.growing) reload();
    response.set(http::field::content_type, "text/html; charset=utf-8");
    response.body() = std::move(made.html);
  } catch (const std::exception& error) {
    set_text(response, http::status::internal_server_error, error.what());
    reload();
  }
}

/// One request and its answer. A client that takes too long, or sends too long a header, is disconnected.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const std::function<Page()>& page) : stream_(std::move(socket)), page_(page) {
    parser_.header_limit(longest_header);
  }

  void start() {
    stream_.expires_after(longest_request);
    http::async_read_header(stream_, buffer_, parser_,
                            [self = shared_from_this()](error_code fault, std::size_t) { self->respond(fault); });
  }
  /// Closes the connection unless the client has begun a request.
  void close_if_idle() {
    if (buffer_.size() == 0 && !response_) stream_.close();
  }

 private:
  void respond(error_code fault) {
    const bool of_client = fault.category() == http::make_error_code(http::error::bad_target).category();
    if (fault && (!of_client || fault == http::error::end_of_stream)) return;
    response_.emplace(http::status::ok, 11);
    response_->keep_alive(false);
    if (fault)
      set_text(*response_, http::status::bad_request, "the request cannot be read");
    else
      answer(parser_.get(), *response_, page_);
    response_->prepare_payload();
    serializer_.emplace(*response_);
    serializer_->split(false);
    stream_.expires_after(longest_answer);
    const auto sent = [self = shared_from_this()](error_code, std::size_t) {
      error_code gone;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, gone);
    };
    if (!fault && parser_.get().method() == http::verb::head)
      http::async_write_header(stream_, *serializer_, sent);
    else
      http::async_write(stream_, *serializer_, sent);
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{2 * longest_header};
  http::request_parser<http::empty_body> parser_;
  std::optional<Response> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  const std::function<Page()>& page_;
};

class Server {
 public:
  Server(std::uint16_t port, const std::function<Page()>& page) : page_(page) {
    error_code fault;
    const tcp::endpoint place(asio::ip::make_address_v4("127.0.0.1"), port);
    acceptor_.open(place.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(place, fault);
    if (!fault) acceptor_.listen(asio::socket_base::max_listen_connections, fault);
    if (fault)
      throw Error(
          fmt::format("port {} of 127.0.0.1 cannot be used: {}; choose another with --port", port, fault.message()));
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  /// Runs until `stopped`, and then until the requests that have begun are answered.
  void run() {
    accept();
    tick();
    context_.run();
  }

 private:
  void accept() {
    acceptor_.async_accept([this](error_code fault, tcp::socket socket) {
      accepting_ = false;
      if (fault) return;  // such as a lack of descriptors; tick() tries again
      const auto connection = std::make_shared<Connection>(std::move(socket), page_);
      connections_.insert(connection);
      connection->start();
      if (connections_.size() < most_connections) accept();
    });
    accepting_ = true;
  }

  void tick() {
    std::erase_if(connections_, [](const std::weak_ptr<Connection>& connection) { return connection.expired(); });
    if (stopped) {
      acceptor_.close();
      for (const std::weak_ptr<Connection>& open : connections_)
        if (const auto connection = open.lock()) connection->close_if_idle();
      return;
    }
    if (!accepting_ && connections_.size() < most_connections) accept();
    timer_.expires_after(milliseconds(100));
    timer_.async_wait([this](error_code) { tick(); });
  }

  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer timer_{context_};
  const std::function<Page()>& page_;
  std::set<std::weak_ptr<Connection>, std::owner_less<>> connections_;
  bool accepting_ = false;
};

}  // namespace

void serve(std::uint16_t port, const std::function<Page()>& page,
           const std::function<void(const std::string&)>& started) {
  Server server(port, page);
  for (const int number : {SIGINT, SIGTERM})
    std::signal(number, [](int again) {
      stopped = 1;
      std::signal(again, SIG_DFL);  // a second Ctrl-C does not wait for requests in progress
    });
  started(fmt::format("http://127.0.0.1:{}/", server.port()));
  server.run();
}

}  // namespace stiefel::cli
