#include "server/client/http_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/server/client/listening_socket.h"

namespace mariner::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A server that answers with fixed bytes, however wrong: of each connection one request after the
// other, then it closes it.
class Answers {
 public:
  using One = std::vector<std::string>;  // connection
  Answers(std::initializer_list<One> connections)
      : path((std::filesystem::temp_directory_path() / ("mariner-hs-" + std::to_string(getpid())))
                 .string()),
        fd_(listen_at(path)) {
    thread_ = std::thread([this, connections = std::vector<One>(connections)] {
      for (const auto& answers : connections) {
        const int client = ::accept(fd_, nullptr, nullptr);
        for (const std::string& answer : answers) {
          char buffer[4096];
          const ssize_t came = ::recv(client, buffer, sizeof buffer, 0);
          if (came > 0) requests.emplace_back(buffer, came);
          (void)::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
        }
        ::close(client);
      }
    });
  }
  ~Answers() {
    end();
    ::close(fd_);
    ::unlink(path.c_str());
  }
  void end() {
    if (thread_.joinable()) thread_.join();
  }
  std::string path;
  std::vector<std::string> requests;  // after end()

 private:
  int fd_;
  std::thread thread_;
};

using One = Answers::One;
constexpr const char* kAbc = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

std::string text_of(const Result<HttpAnswer>& answer) {
  return answer ? std::to_string(answer->status) + answer->body : to_string(answer.error());
}

TEST(HttpSession, AsksOneThingAfterTheOtherOnOneConnection) {
  Answers server{One{kAbc, "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"}};
  HttpSession session(server.path, std::chrono::seconds(5));
  EXPECT_EQ(text_of(session.call({"GET", "/a", ""})), "200abc");
  EXPECT_EQ(text_of(session.call({"POST", "/b", "body", "text/plain"})), "404no");
  server.end();
  EXPECT_THAT(server.requests,
              ElementsAre("GET /a HTTP/1.1\r\nHost: mariner\r\nContent-Length: 0\r\n\r\n",
                          "POST /b HTTP/1.1\r\nHost: mariner\r\nContent-Type: text/plain\r\n"
                          "Content-Length: 4\r\n\r\nbody"));
}

TEST(HttpSession, ConnectsAgainWhenTheConnectionHasEnded) {
  Answers server{One{kAbc}, One{kAbc}};
  HttpSession session(server.path, std::chrono::seconds(5));
  EXPECT_EQ(text_of(session.call({"GET", "/a", ""})), "200abc");
  EXPECT_EQ(text_of(session.call({"GET", "/b", ""})), "200abc");
  server.end();
  EXPECT_EQ(server.requests.size(), 2u);
}

TEST(HttpSession, DoesNotGoOnWithAConnectionThatIsToBeClosed) {
  Answers server{One{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na"},
                 One{kAbc}};
  HttpSession session(server.path, std::chrono::seconds(5));
  EXPECT_EQ(text_of(session.call({"GET", "/a", ""})), "200a");
  EXPECT_EQ(text_of(session.call({"GET", "/b", ""})), "200abc");
}

TEST(HttpSession, TheBodyComesWhereItIsWanted) {
  const std::string large(100'000, 'x');
  Answers server{One{"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + large,
                     "HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\nno", kAbc}};
  HttpSession session(server.path, std::chrono::seconds(5));
  std::vector<std::byte> to(large.size());
  EXPECT_EQ(text_of(session.call({"GET", "/", ""}, to)), "200");
  EXPECT_EQ(std::memcmp(to.data(), large.data(), large.size()), 0);
  EXPECT_EQ(text_of(session.call({"GET", "/", ""}, to)), "422no") << "an error has another length";
  const auto wrong = session.call({"GET", "/", ""}, to);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kProtocol);
  EXPECT_THAT(wrong.error().message, HasSubstr("3 bytes, where 100000 were expected"));
}

TEST(HttpSession, WhatIsNoAnswer) {
  for (const auto& [text, code] :
       {std::pair{"", ErrorCode::kUnavailable},
        {"HTTP/1.1 200", ErrorCode::kUnavailable},
        {"garbage\r\n\r\n", ErrorCode::kProtocol},
        {"HTTP/1.1 200 OK\r\n\r\n", ErrorCode::kProtocol},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc", ErrorCode::kProtocol},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", ErrorCode::kLimit},
        {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", ErrorCode::kUnavailable}}) {
    Answers server{One{text}};
    HttpSession session(server.path, std::chrono::seconds(5));
    const auto answer = session.call({"GET", "/", ""});
    ASSERT_FALSE(answer) << text;
    EXPECT_EQ(answer.error().code, code) << text << ": " << answer.error().message;
  }
  Answers server{One{"HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'x')}};
  HttpSession session(server.path, std::chrono::seconds(5));
  EXPECT_EQ(session.call({"GET", "/", ""}).error().code, ErrorCode::kProtocol);
}

TEST(HttpSession, NobodyListens) {
  HttpSession session("/nowhere.sock", std::chrono::seconds(1));
  EXPECT_THAT(session.call({"GET", "/", ""}).error().message, HasSubstr("marinerd is not running"));
  HttpSession long_path(std::string(200, 'x'), std::chrono::seconds(1));
  EXPECT_EQ(long_path.call({"GET", "/", ""}).error().code, ErrorCode::kInvalidArgument);
}

TEST(HttpSession, SilenceEndsAtTheTimeout) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("mariner-hq-" + std::to_string(getpid())))
          .string();
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  HttpSession session(path, std::chrono::seconds(1));
  EXPECT_EQ(session.call({"GET", "/", ""}).error().message, "the daemon has not answered for 1 s");
  ::close(fd);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace mariner::client
