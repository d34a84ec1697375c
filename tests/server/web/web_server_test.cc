#include "server/web/web_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/web/raw_client.h"

namespace mariner::web {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class FakeSource final : public WebSource {
 public:
  NodeMetrics metrics() override { return {.log_used_bytes = 42}; }
  Result<void> health() override { return {}; }
  Result<void> readiness() override { return Error{ErrorCode::kUnavailable, "replaying the log"}; }
};

HttpResponse ask(HttpMethod method, const std::string& path) {
  FakeSource source;
  return web_response({method, path, "", ""}, source);
}

TEST(WebServer, Paths) {
  EXPECT_EQ(ask(HttpMethod::kGet, "/healthz").status, 200);
  EXPECT_EQ(ask(HttpMethod::kGet, "/healthz").body, "ok\n");
  EXPECT_EQ(ask(HttpMethod::kGet, "/readyz").status, 503);
  EXPECT_EQ(ask(HttpMethod::kGet, "/readyz").body, "replaying the log\n");
  EXPECT_THAT(ask(HttpMethod::kHead, "/metrics").body, HasSubstr("mariner_log_used_bytes 42\n"));
  EXPECT_EQ(ask(HttpMethod::kGet, "/metrics").content_type,
            "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(ask(HttpMethod::kGet, "/").status, 200);
  EXPECT_EQ(ask(HttpMethod::kGet, "/nothing").status, 404);
}

TEST(WebServer, IsReadOnly) {
  for (const auto method : {HttpMethod::kPost, HttpMethod::kDelete, HttpMethod::kOther}) {
    const auto response = ask(method, "/metrics");
    EXPECT_EQ(response.status, 405);
    EXPECT_EQ(response.allow, "GET, HEAD");
  }
}

TEST(WebServer, ServesOverTcp) {
  ServerThread thread;
  FakeSource source;
  std::unique_ptr<HttpServer> server;
  const auto port = thread.run([&] {
    server = *open_web_server(thread.io, {"127.0.0.1", 0, false}, source);
    return server->port();
  });
  {
    RawClient client(port);
    client.send("GET /readyz HTTP/1.1\r\nConnection: close\r\n\r\n");
    EXPECT_FALSE(client.readable(std::chrono::milliseconds(50))) << "not before it is started";
    thread.run([&] {
      server->start();
      return 0;
    });
    EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  }
  thread.run([&] {
    server.reset();
    return 0;
  });
}

}  // namespace
}  // namespace mariner::web
