#include "server/manager/etcd_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/manager/fake_member.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class EtcdConnectionTest : public testing::Test {
 protected:
  void serve(std::string bytes, bool close = false) {
    member_ = std::make_unique<FakeMember>(
        io_, [reply = FakeMember::Reply{std::move(bytes), close}](auto&, auto&) { return reply; });
    connection_ = std::make_shared<EtcdConnection>(io_, member_->endpoint());
  }
  EtcdExchange exchange() {
    std::optional<EtcdExchange> result;
    connection_->exchange({"/x", "body"}, {.connect = 500ms, .answer = 300ms},
                          [&](EtcdExchange ended) { result = std::move(ended); });
    return wait(result);
  }
  EtcdExchange stream(EtcdConnection::TakeLine take) {
    std::optional<EtcdExchange> result;
    connection_->stream({"/x", "body"}, {.connect = 500ms, .answer = 300ms, .silence = 300ms},
                        std::move(take), [&](EtcdExchange ended) { result = std::move(ended); });
    return wait(result);
  }
  EtcdExchange wait(std::optional<EtcdExchange>& result) {
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (!result && std::chrono::steady_clock::now() < end) {
      io_.restart();
      io_.run_one_for(10ms);
    }
    EXPECT_TRUE(result.has_value());
    return std::move(*result);
  }

  boost::asio::io_context io_{1};
  std::unique_ptr<FakeMember> member_;
  std::shared_ptr<EtcdConnection> connection_;
};

TEST_F(EtcdConnectionTest, OneConnectionServesManyExchanges) {
  serve(FakeMember::http("answer"));
  for (int i = 0; i < 3; ++i) {
    const auto exchanged = exchange();
    ASSERT_TRUE(exchanged.answer);
    EXPECT_EQ(exchanged.answer->status, 200u);
    EXPECT_EQ(exchanged.answer->body, "answer");
    EXPECT_TRUE(connection_->reusable());
  }
  EXPECT_EQ(member_->accepted(), 1u);
  member_->hang_up();
  io_.run_for(20ms);
  EXPECT_FALSE(connection_->reusable());
}

TEST_F(EtcdConnectionTest, AFailureComesWithItsStatusAndTrailers) {
  serve("HTTP/1.1 404 Not Found\r\nTrailer: Grpc-Trailer-X\r\nTransfer-Encoding: chunked\r\n\r\n" +
        FakeMember::chunk("no") + "0\r\nGrpc-Trailer-X: y\r\n\r\n");
  const auto exchanged = exchange();
  ASSERT_TRUE(exchanged.answer);
  EXPECT_EQ(exchanged.answer->status, 404u);
  EXPECT_EQ(exchanged.answer->body, "no");
  EXPECT_TRUE(connection_->reusable());
}

TEST_F(EtcdConnectionTest, WhatIsNoAnswerIsAnErrorAndWasSent) {
  for (const std::string& bytes :
       {std::string(), std::string("nonsense\r\n\r\n"), std::string("HTTP/1.1 200 OK\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n"),
        "HTTP/1.1 200 OK\r\nX: " + std::string(100000, 'x') + "\r\n\r\n"}) {
    serve(bytes, true);
    const auto exchanged = exchange();
    EXPECT_FALSE(exchanged.answer) << bytes.substr(0, 60);
    EXPECT_TRUE(exchanged.sent);
    EXPECT_FALSE(connection_->reusable());
  }
}

TEST_F(EtcdConnectionTest, MoreThanAnAnswerSpoilsTheConnection) {
  serve(FakeMember::http("answer") + "HTTP/1.1 200 OK\r\n");
  EXPECT_TRUE(exchange().answer);
  EXPECT_FALSE(connection_->reusable());
}

TEST_F(EtcdConnectionTest, SilenceEndsInTime) {
  serve("");
  const auto exchanged = exchange();
  ASSERT_FALSE(exchanged.answer);
  EXPECT_EQ(exchanged.answer.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(exchanged.sent);
}

TEST_F(EtcdConnectionTest, WhoIsNotThereWasSentNothing) {
  serve("");
  const Endpoint gone = member_->endpoint();
  member_.reset();
  for (const Endpoint& endpoint : {gone, Endpoint{.address = "nowhere", .port = 1}}) {
    connection_ = std::make_shared<EtcdConnection>(io_, endpoint);
    const auto exchanged = exchange();
    ASSERT_FALSE(exchanged.answer);
    EXPECT_FALSE(exchanged.sent);
    EXPECT_THAT(exchanged.answer.error().message, HasSubstr("cannot be connected to"));
  }
}

TEST_F(EtcdConnectionTest, AStreamComesLineByLine) {
  serve(FakeMember::stream_head() + FakeMember::chunk("one\ntw") + FakeMember::chunk("o\n\nthr") +
        FakeMember::chunk("ee\nleft") + "0\r\n\r\n");
  std::vector<std::string> lines;
  const auto exchanged = stream([&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  });
  EXPECT_THAT(lines, ElementsAre("one", "two", "three"));
  ASSERT_TRUE(exchanged.answer);
  EXPECT_EQ(exchanged.answer->body, "left");
}

TEST_F(EtcdConnectionTest, AStreamMayBeRefused) {
  serve(FakeMember::http("no\nleader\n", "503 Service Unavailable"));
  const auto exchanged = stream([](std::string_view) {
    ADD_FAILURE();
    return true;
  });
  ASSERT_TRUE(exchanged.answer);
  EXPECT_EQ(exchanged.answer->status, 503u);
  EXPECT_EQ(exchanged.answer->body, "no\nleader\n");
}

TEST_F(EtcdConnectionTest, ASilentStreamEnds) {
  serve(FakeMember::stream_head() + FakeMember::chunk("one\n"));
  int lines = 0;
  EXPECT_FALSE(stream([&](std::string_view) { return ++lines > 0; }).answer);
  EXPECT_EQ(lines, 1);
}

TEST_F(EtcdConnectionTest, AnEndlessLineEnds) {
  std::string bytes = FakeMember::stream_head();
  const std::string piece = FakeMember::chunk(std::string(1 << 20, 'x'));
  for (int i = 0; i < 18; ++i) bytes += piece;
  serve(bytes);
  const auto exchanged = stream([](std::string_view) { return true; });
  ASSERT_FALSE(exchanged.answer);
  EXPECT_EQ(exchanged.answer.error().code, ErrorCode::kProtocol);
}

TEST_F(EtcdConnectionTest, AStreamMayBeLeftFromWithin) {
  serve(FakeMember::stream_head() + FakeMember::chunk("one\ntwo\n"));
  int lines = 0;
  EXPECT_FALSE(stream([&](std::string_view) { return ++lines > 1; }).answer);
  EXPECT_EQ(lines, 1);
  serve(FakeMember::stream_head() + FakeMember::chunk("one\ntwo\n"));
  connection_->stream(
      {"/x", ""}, {.connect = 500ms, .answer = 500ms, .silence = 500ms},
      [&](std::string_view) {
        connection_->close();
        ++lines;
        return true;
      },
      [](EtcdExchange) { ADD_FAILURE(); });
  io_.restart();
  io_.run_for(100ms);
  EXPECT_EQ(lines, 2);
}

}  // namespace
}  // namespace mariner::manager
