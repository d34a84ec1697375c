// A small HTTP/1.1 server for the admin API and for metrics: on a unix socket or a TCP address, on
// the io_context of its owner, whose thread is the only one that touches it. It listens as soon as
// it is made, and accepts from start() on: whoever connects before waits in the system's backlog.
//
// It is bounded in everything (HttpLimits), and no byte that a client sends can do more than get
// that client's connection closed.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "proto/endpoint.h"
#include "proto/error.h"
#include "server/web/http_message.h"

namespace mariner::web {

struct HttpLimits {
  std::size_t connections = 64;            // more get status 503 and are closed
  std::uint32_t header_bytes = 16u << 10;  // more: 431
  std::uint64_t body_bytes = 1u << 20;     // more: 413
  std::chrono::milliseconds read_timeout =
      std::chrono::seconds(30);  // for a whole request, and idle
  std::chrono::milliseconds write_timeout = std::chrono::seconds(30);  // for a client to take bytes
  // ... of an answer that comes as it is made, and is shown page by page, perhaps.
  std::chrono::milliseconds stream_timeout = std::chrono::minutes(30);
};

class HttpServer {
 public:
  // Listens on a unix socket with mode 0600, replacing one that nobody listens on any more.
  // kBusy: somebody listens there. kAlreadyExists: something else has that name. kIo: the
  // directory is missing, or the system refuses.
  static Result<std::unique_ptr<HttpServer>> listen_unix(boost::asio::io_context& io,
                                                         const std::string& path, HttpLimits limits,
                                                         HttpHandler handler);

  // Listens on a TCP address. kBusy: it is in use. kIo: the system refuses.
  static Result<std::unique_ptr<HttpServer>> listen_tcp(boost::asio::io_context& io,
                                                        const Endpoint& endpoint, HttpLimits limits,
                                                        HttpHandler handler);

  // As stop().
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Begins to accept. At most once, and not after stop().
  void start();

  // Closes the listener and every connection, and removes the unix socket. The handler is not
  // called any more; replies that come later go nowhere. May be called twice, and without start().
  void stop();

  // The TCP port, also if any free one was asked for; 0 on a unix socket.
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::size_t connections() const;

 private:
  class Listener;
  explicit HttpServer(std::shared_ptr<Listener> listener);
  std::shared_ptr<Listener> listener_;
};

}  // namespace mariner::web
