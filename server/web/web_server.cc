#include "server/web/web_server.h"

namespace mariner::web {
namespace {

HttpResponse state(const Result<void>& state) {
  if (state) return {200, kPlainText, "ok\n", {}};
  return {503, kPlainText, state.error().message + "\n", {}};
}

}  // namespace

HttpResponse web_response(const HttpRequest& request, WebSource& source) {
  if (request.method != HttpMethod::kGet && request.method != HttpMethod::kHead) {
    return {405, kPlainText, "this server is read-only: GET or HEAD\n", "GET, HEAD"};
  }
  if (request.path == "/metrics")
    return {200, kMetricsContentType, metrics_text(source.metrics()), {}};
  if (request.path == "/healthz") return state(source.health());
  if (request.path == "/readyz") return state(source.readiness());
  if (request.path == "/")
    return {200, kPlainText, "marinerd " MARINER_VERSION ": /metrics /healthz /readyz\n", {}};
  return {404, kPlainText, "not found; there are /metrics, /healthz and /readyz\n", {}};
}

Result<std::unique_ptr<HttpServer>> open_web_server(boost::asio::io_context& io,
                                                    const Endpoint& endpoint, WebSource& source) {
  // Nobody has reason to send a body here.
  const HttpLimits limits{.body_bytes = 4096, .read_timeout = std::chrono::seconds(15)};
  return HttpServer::listen_tcp(io, endpoint, limits,
                                [&source](HttpRequest request, HttpReply reply) {
                                  reply.send(web_response(request, source));
                                });
}

}  // namespace mariner::web
