#include "server/web/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "tests/server/web/echo_server.h"

namespace mariner::web {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

class HttpServerTest : public EchoServerTest {};

TEST_F(HttpServerTest, AnswersARequest) {
  start();
  const auto answer = ask(
      "POST /a/b?c=d HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n/a/b|c=d|body"));
}

TEST_F(HttpServerTest, WhoConnectsBeforeTheStartIsServedAfterIt) {
  listen();
  RawClient early(path_);
  ASSERT_TRUE(early.connected());
  early.send("GET /early HTTP/1.1\r\nConnection: close\r\n\r\n");
  // The loop runs meanwhile, so that it has seen that somebody waits.
  EXPECT_FALSE(early.readable(50ms));
  EXPECT_EQ(connections(), 0u);
  accept();
  EXPECT_THAT(early.receive(), EndsWith("/early||"));
}

TEST_F(HttpServerTest, AServerThatNeverStartedCanBeStopped) {
  listen();
  RawClient waiting(path_);
  thread_.run([this] {
    server_.reset();
    return 0;
  });
  EXPECT_EQ(waiting.receive(), "") << "it does not wait for ever";
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(HttpServerTest, GarbageClosesOnlyItsOwnConnection) {
  start();
  RawClient good(path_);
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 4000 + 1, '\0');
    for (auto& byte : bytes) byte = static_cast<char>(random());
    if (i % 3 == 0) bytes = "GET / HTTP/1.1\r\n" + bytes + "\r\n\r\n";
    if (i % 3 == 1) bytes = "GET /" + bytes + " HTTP/1.1\r\n\r\n";
    RawClient client(path_);
    client.send(bytes);
  }
  good.send("GET /still HTTP/1.1\r\n\r\n");
  EXPECT_THAT(good.receive("/still||"), EndsWith("/still||"));
}

TEST_F(HttpServerTest, AtTheLimitOfConnectionsMoreAreToldAndClosed) {
  start({.connections = 4});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(std::make_unique<RawClient>(path_));
  while (connections() < 4) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(RawClient(path_).receive(), StartsWith("HTTP/1.1 503 "));
  clients.pop_back();
  while (connections() >= 4) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(ask("GET /n HTTP/1.1\r\nConnection: close\r\n\r\n"), EndsWith("/n||"));
}

TEST_F(HttpServerTest, StoppingClosesConnectionsAndRemovesTheSocket) {
  start();
  RawClient idle(path_);
  RawClient waiting(path_);
  waiting.send("GET /hold HTTP/1.1\r\n\r\n");
  while (thread_.run([this] { return held_.empty(); })) std::this_thread::sleep_for(1ms);
  thread_.run([this] {
    server_.reset();
    return 0;
  });
  EXPECT_EQ(idle.receive(), "");
  EXPECT_EQ(waiting.receive(), "");
  EXPECT_FALSE(std::filesystem::exists(path_));
  // The reply outlives the server.
  thread_.run([this] {
    held_[0].send({});
    held_.clear();
    return 0;
  });
}

TEST_F(HttpServerTest, TheSocketIsForItsOwnerOnly) {
  start();
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(HttpServerTest, AStaleSocketIsReplacedAndALiveOneIsNot) {
  {
    const int stale = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    ASSERT_EQ(::bind(stale, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(stale);
  }
  start();
  const auto second = thread_.run([this] {
    auto server = HttpServer::listen_unix(thread_.io, path_, {}, [](HttpRequest, HttpReply) {});
    return server ? std::string() : to_string(server.error());
  });
  EXPECT_THAT(second, HasSubstr("busy: " + path_ + " is in use: another daemon"));
  EXPECT_THAT(ask("GET /n HTTP/1.1\r\nConnection: close\r\n\r\n"), EndsWith("/n||"));
}

TEST_F(HttpServerTest, WhatIsNoSocketIsLeftAlone) {
  std::ofstream(path_) << "precious";
  const auto error = thread_.run([this] {
    return to_string(
        HttpServer::listen_unix(thread_.io, path_, {}, [](HttpRequest, HttpReply) {}).error());
  });
  EXPECT_THAT(error, HasSubstr("already-exists: " + path_ + " exists and is not a socket"));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(HttpServerTest, AMissingDirectoryIsAnError) {
  const auto error = thread_.run([this] {
    return to_string(HttpServer::listen_unix(thread_.io, directory_ / "none" / "s", {},
                                             [](HttpRequest, HttpReply) {})
                         .error());
  });
  EXPECT_THAT(error, HasSubstr("does its directory exist?"));
}

TEST_F(HttpServerTest, ATcpAddressInUseIsBusy) {
  const auto error = thread_.run([this] {
    auto echo = [](HttpRequest request, HttpReply reply) {
      reply.send({200, kPlainText, request.path, {}});
    };
    server_ = *HttpServer::listen_tcp(thread_.io, {"127.0.0.1", 0, false}, {}, echo);
    server_->start();
    return to_string(
        HttpServer::listen_tcp(thread_.io, {"127.0.0.1", server_->port(), false}, {}, echo)
            .error());
  });
  EXPECT_THAT(error, StartsWith("busy: cannot listen on 127.0.0.1:"));
  RawClient client(thread_.run([this] { return server_->port(); }));
  client.send("GET /tcp HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.receive(), EndsWith("/tcp"));
}

}  // namespace
}  // namespace mariner::web
