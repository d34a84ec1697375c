// What a daemon shows over HTTP: /metrics, /healthz and /readyz. Read-only, meant for loopback.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "proto/error.h"
#include "server/web/http_server.h"
#include "server/web/metrics.h"

namespace mariner::web {

// Asked on the server's thread, at each request.
class WebSource {
 public:
  virtual ~WebSource() = default;
  [[nodiscard]] virtual NodeMetrics metrics() = 0;
  // Whether the daemon works at all; the error says why not.
  [[nodiscard]] virtual Result<void> health() = 0;
  // Whether it serves initiators now.
  [[nodiscard]] virtual Result<void> readiness() = 0;
};

// The answer to one request: the whole of the logic, without a socket.
[[nodiscard]] HttpResponse web_response(const HttpRequest& request, WebSource& source);

// Listens at `endpoint`; start() of what it returns begins to serve `source`, which outlives the
// server. Errors as HttpServer::listen_tcp().
[[nodiscard]] Result<std::unique_ptr<HttpServer>> open_web_server(boost::asio::io_context& io,
                                                                  const Endpoint& endpoint,
                                                                  WebSource& source);

}  // namespace mariner::web
