#include "cli/serve.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <system_error>

#include <stiefel/error.hpp>

namespace stiefel::cli {
namespace {

constexpr int seconds_between_reloads = 5;

volatile std::sig_atomic_t stopped = 0;

/// Browsers open connections that they do not use, and each takes a thread for a second. The idle call comes whenever
/// nobody has connected for a while.
class Threads : public httplib::ThreadPool {
 public:
  explicit Threads(httplib::Server& server) : ThreadPool(16), server_(server) {}
  void on_idle() override {
    if (stopped) server_.stop();
  }

 private:
  httplib::Server& server_;
};

/// Under another name the request comes from a page of somebody else; the port may be that of a tunnel.
bool own_name(const std::string& host) {
  const std::string name = host.substr(0, host.find(':'));
  return name == "127.0.0.1" || name == "localhost";
}

void set_text(httplib::Response& response, int status, const std::string& sentence) {
  response.status = status;
  response.set_content(sentence + "\n", "text/plain; charset=utf-8");
}

void answer(const httplib::Request& request, httplib::Response& response, const std::function<Page()>& page) {
  const auto reload = [&] { response.set_header("Refresh", std::to_string(seconds_between_reloads)); };
  response.set_header("Cache-Control", "no-store");
  if (!own_name(request.get_header_value("Host")))
    return set_text(response, 403, "this report is for this machine only");
  if (request.method != "GET" && request.method != "HEAD")
    return set_text(response, 405, "this server answers only GET and HEAD");
  if (request.target != "/") return set_text(response, 404, "there is only the report, at /");
  if (request.has_header("Range")) return set_text(response, 416, "this server sends only whole pages");
  try {
    const Page made = page();
    if (made.growing) reload();
    response.status = 200;
    response.set_content(made.html, "text/html; charset=utf-8");
  } catch (const std::exception& error) {
    set_text(response, 500, error.what());
    reload();
  }
}

}  // namespace

void serve(std::uint16_t port, const std::function<Page()>& page,
           const std::function<void(const std::string&)>& started) {
  httplib::Server server;
  server.new_task_queue = [&] { return new Threads(server); };
  server.set_idle_interval(0, 100'000);
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(1);
  server.set_read_timeout(10);
  server.set_write_timeout(30);
  server.set_payload_max_length(0);
  // The library's own options let two servers share a port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  int taken = port;
  std::mutex one_at_a_time;
  const std::function<Page()> made = [&] {
    const std::scoped_lock lock(one_at_a_time);
    return page();
  };
  server.set_pre_routing_handler([&](const httplib::Request& request, httplib::Response& response) {
    answer(request, response, made);
    return httplib::Server::HandlerResponse::Handled;
  });
  errno = 0;
  if (port == 0)
    taken = server.bind_to_any_port("127.0.0.1");
  else if (!server.bind_to_port("127.0.0.1", port))
    taken = -1;
  if (taken < 0)
    throw Error(fmt::format("port {} of 127.0.0.1 cannot be used: {}; choose another with --port", port,
                            std::generic_category().message(errno)));
  for (const int number : {SIGINT, SIGTERM})
    std::signal(number, [](int again) {
      stopped = 1;
      std::signal(again, SIG_DFL);  // a second Ctrl-C does not wait for requests in progress
    });
  started(fmt::format("http://127.0.0.1:{}/", taken));
  server.listen_after_bind();
}

}  // namespace stiefel::cli
