// An HttpServer on a unix socket that echoes what it is asked, for raw clients.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/web/http_server.h"
#include "tests/server/web/raw_client.h"

namespace mariner::web {

class EchoServerTest : public testing::Test {
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

  // Echoes; /hold keeps the reply, /drop drops it, /stream sends two lines and the body, /slices
  // three pieces of memory behind the echo; /peer tells who asks; /bytes streams the body, twice,
  // and trailers; /flood streams without end; /break drops what it has begun to stream.
  void handle(HttpRequest request, HttpReply reply) {
    if (request.path == "/hold") {
      held_.push_back(std::move(reply));
    } else if (request.path == "/stream") {
      auto shared = std::make_shared<HttpReply>(std::move(reply));
      shared->progress("one\n");
      auto timer =
          std::make_shared<boost::asio::steady_timer>(thread_.io, std::chrono::milliseconds(20));
      timer->async_wait([shared, timer](auto) {
        shared->progress("two\n");
        shared->send({200, kJson, "three\n", {}});
      });
    } else if (request.path == "/slices") {
      HttpResponse response{200, kOctets, request.body, {}};
      for (const char byte : {'x', 'y', 'z'}) {
        Payload payload = Payload::allocate(kSliceBytes);
        std::memset(payload.data(), byte, payload.size());
        response.slices.push_back({payload, 1, kSliceBytes - 1});
      }
      response.keeps = kept_;
      reply.send(std::move(response));
    } else if (request.path == "/peer") {
      reply.send({200, kPlainText, std::to_string(request.peer), {}});
    } else if (request.path == "/bytes") {
      auto shared = std::make_shared<HttpReply>(std::move(reply));
      shared->on_gone([this] { ++gone_; });
      shared->write(request.body, [shared, body = request.body] {
        shared->write(body, [shared] {
          shared->end({{"Mariner-Exit", "7"}, {"Mariner-Errors", ""}});
        });
      });
    } else if (request.path == "/flood" || request.path == "/silence") {
      held_.push_back(std::move(reply));
      held_.back().on_gone([this] { ++gone_; });
      if (request.path == "/flood") flood();
    } else if (request.path == "/break") {
      held_.push_back(std::move(reply));
      held_.back().write("one", [this] {
        held_.back().write("two", [this] { ++floods_; });
        held_.clear();
      });
    } else if (request.path != "/drop") {
      reply.send({200, kPlainText, request.path + "|" + request.query + "|" + request.body, {}});
    }
  }

  void flood() {
    held_.back().write(std::string(1u << 16, 'f'), [this] {
      ++floods_;
      flood();
    });
  }

  void listen(HttpLimits limits = {}) {
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

  void start(HttpLimits limits = {}) {
    listen(limits);
    accept();
  }

  void accept() {
    thread_.run([this] {
      server_->start();
      return 0;
    });
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
  std::atomic<int> gone_ = 0;
  std::atomic<int> floods_ = 0;
  static constexpr std::size_t kSliceBytes = 1u << 20;  // more than a socket takes at once
  std::shared_ptr<const void> kept_ = std::make_shared<int>();
};

}  // namespace mariner::web
