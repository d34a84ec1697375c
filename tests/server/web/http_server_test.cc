#include "server/web/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "tests/server/web/raw_client.h"

namespace mariner::web {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("mariner-http-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
    path_ = directory_ / "s.sock";
  }
  void TearDown() override {
    thread_.run([this] {
      server_.reset();
      held_.clear();
      return 0;
    });
    std::filesystem::remove_all(directory_);
  }

  // Echoes; /hold keeps the reply, /drop drops it, /stream sends two lines and the body.
  void handle(HttpRequest request, HttpReply reply) {
    if (request.path == "/hold") {
      held_.push_back(std::move(reply));
    } else if (request.path == "/stream") {
      auto shared = std::make_shared<HttpReply>(std::move(reply));
      shared->progress("one\n");
      auto timer = std::make_shared<boost::asio::steady_timer>(thread_.io, 20ms);
      timer->async_wait([shared, timer](auto) {
        shared->progress("two\n");
        shared->send({200, kJson, "three\n", {}});
      });
    } else if (request.path != "/drop") {
      reply.send({200, kPlainText, request.path + "|" + request.query + "|" + request.body, {}});
    }
  }

  void start(HttpLimits limits = {}) {
    const auto error = thread_.run([&] {
      auto server = HttpServer::listen_unix(thread_.io, path_, limits,
                                            [this](HttpRequest request, HttpReply reply) {
                                              handle(std::move(request), std::move(reply));
                                            });
      if (!server) return to_string(server.error());
      server_ = *std::move(server);
      return std::string();
    });
    ASSERT_EQ(error, "");
  }

  std::string ask(std::string_view request) {
    RawClient client(path_);
    client.send(request);
    return client.receive();
  }

  std::size_t connections() {
    return thread_.run([this] { return server_->connections(); });
  }

  std::filesystem::path directory_;
  std::string path_;
  ServerThread thread_;
  std::unique_ptr<HttpServer> server_;
  std::vector<HttpReply> held_;
};

TEST_F(HttpServerTest, AnswersARequest) {
  start();
  const auto answer = ask(
      "POST /a/b?c=d HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n/a/b|c=d|body"));
}

TEST_F(HttpServerTest, ServesSeveralRequestsOnOneConnection) {
  start();
  RawClient client(path_);
  for (int i = 0; i < 3; ++i) {
    client.send("GET /n HTTP/1.1\r\n\r\n");
    EXPECT_THAT(client.receive("/n||"), EndsWith("/n||"));
  }
  // Pipelined ones, too.
  client.send("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n");
  const auto both = client.receive();
  EXPECT_THAT(both, HasSubstr("/1||HTTP/1.1 200"));
  EXPECT_THAT(both, EndsWith("/2||"));
}

TEST_F(HttpServerTest, HeadHasTheLengthAndNoBody) {
  start();
  const auto answer = ask("HEAD /a HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, StreamsProgressAsChunks) {
  start();
  const auto answer = ask("POST /stream HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(answer, HasSubstr("4\r\none\n\r\n"));
  EXPECT_THAT(answer, EndsWith("6\r\nthree\n\r\n0\r\n\r\n"));
}

TEST_F(HttpServerTest, AConnectionGoesOnAfterAStream) {
  start();
  RawClient client(path_);
  client.send("POST /stream HTTP/1.1\r\n\r\n");
  client.receive("0\r\n\r\n");
  client.send("GET /n HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive("/n||"), EndsWith("/n||"));
}

TEST_F(HttpServerTest, ADroppedReplyIsAnInternalError) {
  start();
  EXPECT_THAT(ask("GET /drop HTTP/1.1\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, RefusesWhatIsTooLong) {
  start();
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  std::string chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20; ++i) chunks += "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  EXPECT_THAT(ask(chunks), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Length: 1048576\r\nConnection: close\r\n\r\n" +
                  std::string(1u << 20, 'x')),
              StartsWith("HTTP/1.1 200 "));
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

TEST_F(HttpServerTest, ASilentClientIsClosed) {
  start({.read_timeout = 50ms});
  EXPECT_EQ(RawClient(path_).receive(), "");
  RawClient half(path_);
  half.send("GET / HT");
  EXPECT_EQ(half.receive(), "");
}

TEST_F(HttpServerTest, AClientThatDoesNotReadIsClosed) {
  start({.write_timeout = 50ms});
  RawClient client(path_);
  std::string request =
      "POST / HTTP/1.1\r\nContent-Length: 1048576\r\n\r\n" + std::string(1u << 20, 'x');
  client.send(request);
  for (int i = 0; i < 200 && connections() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(connections(), 0u);
}

TEST_F(HttpServerTest, AReplyAfterTheClientHasGoneGoesNowhere) {
  start();
  { RawClient(path_).send("GET /hold HTTP/1.1\r\n\r\n"); }
  while (thread_.run([this] { return held_.empty(); })) std::this_thread::sleep_for(1ms);
  thread_.run([this] {
    held_[0].progress("line\n");
    held_.clear();
    return 0;
  });
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
