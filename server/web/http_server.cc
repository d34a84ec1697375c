#include "server/web/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "proto/check.h"
#include "server/web/http_connection.h"

namespace mariner::web {
namespace {

namespace net = boost::asio;
using boost::system::error_code;

constexpr int kBacklog = 64;
constexpr auto kRetryAfter = std::chrono::milliseconds(100);
constexpr std::string_view kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: "
    "21\r\nConnection: close\r\n\r\n"
    "too many connections\n";

Error system_error(std::string_view what, const error_code& error) {
  const bool busy = error == net::error::address_in_use;
  return Error{busy ? ErrorCode::kBusy : ErrorCode::kIo,
               fmt::format("{}: {}", what, error.message())};
}

// Whether a listener is behind the socket file `path`.
bool answers(net::io_context& io, const std::string& path) {
  net::local::stream_protocol::socket probe(io);
  error_code error;
  probe.connect(net::local::stream_protocol::endpoint(path), error);
  return error != net::error::connection_refused;
}

Result<void> make_room(net::io_context& io, const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) {
    return Error{
        ErrorCode::kAlreadyExists,
        fmt::format("{} exists and is not a socket: move it away, or configure another path",
                    path)};
  }
  if (answers(io, path)) {
    return Error{ErrorCode::kBusy,
                 fmt::format("{} is in use: another daemon is listening there", path)};
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    return errno_error(errno, "cannot remove the stale socket " + path);
  return {};
}

// The file that a unix listener made, so that it removes that one and no other.
struct SocketFile {
  std::string path;
  dev_t device = 0;
  ino_t inode = 0;

  void remove() const {
    struct stat status {};
    if (path.empty() || lstat(path.c_str(), &status) != 0) return;
    if (status.st_dev == device && status.st_ino == inode) unlink(path.c_str());
  }
};

}  // namespace

class HttpServer::Listener : public std::enable_shared_from_this<HttpServer::Listener> {
 public:
  using Unix = net::local::stream_protocol;
  using Tcp = net::ip::tcp;

  Listener(net::io_context& io, HttpLimits limits, HttpHandler handler)
      : io_(io), retry_(io), service_(std::make_shared<HttpService>()) {
    service_->limits = limits;
    service_->handler = std::move(handler);
  }

  Result<void> open(const std::string& path) {
    auto made = make_room(io_, path);
    if (!made) return made;
    auto& acceptor = acceptor_.emplace<Unix::acceptor>(io_);
    error_code error;
    acceptor.open(Unix(), error);
    if (error) return system_error("cannot make a socket", error);
    // The mode is set before the file exists (Linux gives it to the file), so that there is no
    // moment at which others could connect.
    if (fchmod(acceptor.native_handle(), S_IRUSR | S_IWUSR) != 0)
      return errno_error(errno, "cannot set the socket's mode");
    acceptor.bind(Unix::endpoint(path), error);
    if (error)
      return system_error(fmt::format("cannot listen on {} (does its directory exist?)", path),
                          error);
    struct stat status {};
    if (lstat(path.c_str(), &status) == 0) file_ = {path, status.st_dev, status.st_ino};
    acceptor.listen(kBacklog, error);
    if (error) return system_error("cannot listen on " + path, error);
    return {};
  }

  Result<void> open(const Endpoint& endpoint) {
    const auto where = "cannot listen on " + to_string(endpoint);
    error_code error;
    const auto address = net::ip::make_address(endpoint.address, error);
    if (error) return system_error(where, error);
    auto& acceptor = acceptor_.emplace<Tcp::acceptor>(io_);
    acceptor.open(endpoint.v6 ? Tcp::v6() : Tcp::v4(), error);
    if (error) return system_error(where, error);
    acceptor.set_option(net::socket_base::reuse_address(true), error);
    if (!error && endpoint.v6) acceptor.set_option(boost::asio::ip::v6_only(true), error);
    if (!error) acceptor.bind({address, endpoint.port}, error);
    if (!error) acceptor.listen(kBacklog, error);
    if (error) return system_error(where, error);
    port_ = acceptor.local_endpoint(error).port();
    return {};
  }

  void start() {
    CHECK(!std::exchange(started_, true));
    std::visit(
        [this](auto& acceptor) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(acceptor)>, std::monostate>) {
            CHECK_MSG(acceptor.is_open(), "a server is started that was stopped");
            accept(acceptor);
          }
        },
        acceptor_);
  }

  void stop() {
    error_code ignored;
    std::visit(
        [&ignored](auto& acceptor) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(acceptor)>, std::monostate>)
            acceptor.close(ignored);
        },
        acceptor_);
    retry_.cancel();
    service_->handler.reset();
    for (const auto& weak : connections_) {
      if (const auto connection = weak.lock()) connection->close();
    }
    connections_.clear();
    file_.remove();
    file_ = {};
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::size_t connections() const { return service_->connections; }

 private:
  template <typename Acceptor>
  void accept(Acceptor& acceptor) {
    using Socket = typename Acceptor::protocol_type::socket;
    acceptor.async_accept([self = shared_from_this(), &acceptor](error_code error, Socket socket) {
      if (error == net::error::operation_aborted || !acceptor.is_open()) return;
      if (error) return self->accept_later(acceptor);
      self->serve(std::move(socket));
      self->accept(acceptor);
    });
  }

  // After a failure that may pass, such as too many open files.
  template <typename Acceptor>
  void accept_later(Acceptor& acceptor) {
    retry_.expires_after(kRetryAfter);
    retry_.async_wait([self = shared_from_this(), &acceptor](error_code error) {
      if (!error && acceptor.is_open()) self->accept(acceptor);
    });
  }

  void serve(net::generic::stream_protocol::socket socket) {
    if (service_->connections >= service_->limits.connections) {
      // One attempt, without waiting: whoever does not take it sees the connection close.
      error_code ignored;
      socket.non_blocking(true, ignored);
      socket.send(net::buffer(kTooMany), 0, ignored);
      return;
    }
    std::erase_if(connections_, [](const auto& connection) { return connection.expired(); });
    auto connection = std::make_shared<HttpConnection>(std::move(socket), service_);
    connections_.push_back(connection);
    connection->start();
  }

  net::io_context& io_;
  net::steady_timer retry_;
  std::shared_ptr<HttpService> service_;
  std::variant<std::monostate, Unix::acceptor, Tcp::acceptor> acceptor_;
  std::vector<std::weak_ptr<HttpConnection>> connections_;
  SocketFile file_;
  std::uint16_t port_ = 0;
  bool started_ = false;
};

HttpServer::HttpServer(std::shared_ptr<Listener> listener) : listener_(std::move(listener)) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::start() { listener_->start(); }

void HttpServer::stop() { listener_->stop(); }

std::uint16_t HttpServer::port() const { return listener_->port(); }

std::size_t HttpServer::connections() const { return listener_->connections(); }

Result<std::unique_ptr<HttpServer>> HttpServer::listen_unix(net::io_context& io,
                                                            const std::string& path,
                                                            HttpLimits limits,
                                                            HttpHandler handler) {
  auto listener = std::make_shared<Listener>(io, limits, std::move(handler));
  const auto opened = listener->open(path);
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(listener)));
  if (!opened) return opened.error();
  return server;
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen_tcp(net::io_context& io,
                                                           const Endpoint& endpoint,
                                                           HttpLimits limits, HttpHandler handler) {
  auto listener = std::make_shared<Listener>(io, limits, std::move(handler));
  const auto opened = listener->open(endpoint);
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(listener)));
  if (!opened) return opened.error();
  return server;
}

}  // namespace mariner::web
