#include "server/client/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/server/client/listening_socket.h"

namespace mariner::client {
namespace {

// A server that answers one connection with fixed bytes, however wrong, or with silence.
class OneAnswer {
 public:
  OneAnswer(std::string answer, std::chrono::milliseconds hold)
      : path((std::filesystem::temp_directory_path() / ("mariner-hc-" + std::to_string(getpid())))
                 .string()),
        fd_(listen_at(path)) {
    thread_ = std::thread([this, answer = std::move(answer), hold] {
      const int client = ::accept(fd_, nullptr, nullptr);
      char buffer[4096];
      (void)::recv(client, buffer, sizeof buffer, 0);
      (void)::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      std::this_thread::sleep_for(hold);
      ::close(client);
    });
  }
  ~OneAnswer() {
    thread_.join();
    ::close(fd_);
    ::unlink(path.c_str());
  }
  std::string path;

 private:
  int fd_;
  std::thread thread_;
};

Result<HttpAnswer> ask(std::string answer, std::chrono::milliseconds hold = {}) {
  const OneAnswer server(std::move(answer), hold);
  return http_call(server.path, {"GET", "/", ""}, std::chrono::seconds(1), {});
}

TEST(HttpClient, AnAnswerWithALength) {
  const auto answer = ask("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->body, "abc");
}

TEST(HttpClient, WhatIsNoAnswer) {
  for (const auto* text : {"", "garbage\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "HTTP/1.1 200"}) {
    const auto answer = ask(text);
    ASSERT_FALSE(answer) << text;
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  }
}

TEST(HttpClient, SilenceEndsAtTheTimeout) {
  const auto answer = ask("", std::chrono::milliseconds(1500));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "the daemon has not answered for 1 s");
}

TEST(HttpClient, BytesOfAnAnswerAsTheyCome) {
  const OneAnswer server(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n"
      "Mariner-Exit: 3\r\nOther: 1\r\n\r\n",
      {});
  std::string bytes;
  const auto answer = http_call(server.path, {"POST", "/", ""}, std::chrono::seconds(1), {},
                                [&](std::string_view some) -> Result<void> {
                                  bytes += some;
                                  return {};
                                });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(bytes, "onetwo");
  EXPECT_EQ(answer->body, "");
  EXPECT_EQ(answer->trailers, (std::map<std::string, std::string>{{"Mariner-Exit", "3"}}));
}

TEST(HttpClient, WhoTakesTheBytesMayEndIt) {
  const OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none", {});
  const auto answer = http_call(server.path, {"POST", "/", ""}, std::chrono::seconds(1), {},
                                [](std::string_view) -> Result<void> {
                                  return Error{ErrorCode::kIo, "full"};
                                });
  EXPECT_EQ(answer.error().message, "full");
}

TEST(HttpClient, AnErrorIsNoBytes) {
  const OneAnswer server("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc", {});
  const auto answer = http_call(server.path, {"POST", "/", ""}, std::chrono::seconds(1), {},
                                [](std::string_view) -> Result<void> {
                                  return Error{ErrorCode::kIo, "asked"};
                                });
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "abc");
}

}  // namespace
}  // namespace mariner::client
