#include "server/web/http_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/web/echo_server.h"

namespace mariner::web {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

class HttpConnectionTest : public EchoServerTest {
 protected:
  // Whether no connection is left within two seconds.
  bool all_gone() {
    for (int i = 0; i < 200 && connections() > 0; ++i) std::this_thread::sleep_for(10ms);
    return connections() == 0;
  }
};

TEST_F(HttpConnectionTest, ServesOneRequestAfterTheOther) {
  start();
  RawClient client(path_);
  for (int i = 0; i < 3; ++i) {
    client.send("GET /n HTTP/1.1\r\n\r\n");
    EXPECT_THAT(client.receive("/n||"), EndsWith("/n||"));
  }
  EXPECT_EQ(connections(), 1u);
}

TEST_F(HttpConnectionTest, PiecesOfMemoryFollowTheBody) {
  start();
  const std::string answer =
      ask("POST /slices HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
          "GET /next HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string expected = "\r\n\r\nbody" + std::string(kSliceBytes - 1, 'x') +
                               std::string(kSliceBytes - 1, 'y') +
                               std::string(kSliceBytes - 1, 'z') + "HTTP/1.1 200 OK\r\n";
  EXPECT_NE(answer.find(expected), std::string::npos);
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/octet-stream\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 3145729\r\n"));
  EXPECT_THAT(answer, EndsWith("/next||"));
  EXPECT_EQ(kept_.use_count(), 1);
}

TEST_F(HttpConnectionTest, AHeadHasNoPiecesOfMemory) {
  start();
  const std::string answer = ask("HEAD /slices HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 3145725\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpConnectionTest, WhoGoesInTheMiddleOfAnAnswerLetsGoOfIt) {
  start();
  {
    RawClient client(path_);
    client.send("GET /slices HTTP/1.1\r\n\r\n");
    client.receive("HTTP/1.1 200");
  }
  EXPECT_TRUE(all_gone());
  EXPECT_EQ(kept_.use_count(), 1);
}

TEST_F(HttpConnectionTest, PipelinedRequestsAreAnsweredInTheirOrder) {
  start();
  const auto answers =
      ask("GET /1 HTTP/1.1\r\n\r\nPOST /2?q HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
          "POST /stream HTTP/1.1\r\n\r\nGET /4 HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answers, HasSubstr("/1||HTTP/1.1 200"));
  EXPECT_THAT(answers, HasSubstr("/2|q|abcHTTP/1.1 200"));
  EXPECT_THAT(answers, HasSubstr("6\r\nthree\n\r\n0\r\n\r\nHTTP/1.1 200"));
  EXPECT_THAT(answers, EndsWith("/4||"));
}

// One request is handled at a time, however many a client has sent.
TEST_F(HttpConnectionTest, APipelinedRequestWaitsForTheAnswerBeforeIt) {
  start();
  RawClient client(path_);
  client.send("GET /hold HTTP/1.1\r\n\r\nGET /hold HTTP/1.1\r\nConnection: close\r\n\r\n");
  const auto held = [this] { return thread_.run([this] { return held_.size(); }); };
  while (held() == 0) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(held(), 1u);
  const auto answer = [this](std::size_t i) {
    thread_.run([this, i] {
      held_[i].send({200, kPlainText, "held", {}});
      return 0;
    });
  };
  answer(0);
  while (held() == 1) std::this_thread::sleep_for(1ms);
  answer(1);
  EXPECT_THAT(client.receive(), EndsWith("held"));
}

TEST_F(HttpConnectionTest, ARequestMayArriveByteByByte) {
  start();
  RawClient client(path_);
  for (const char byte :
       std::string("POST /b HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"))
    client.send({&byte, 1});
  EXPECT_THAT(client.receive(), EndsWith("/b||ok"));
}

TEST_F(HttpConnectionTest, AnOldClientIsClosedAfterItsAnswer) {
  start();
  EXPECT_THAT(ask("GET /old HTTP/1.0\r\n\r\n"), EndsWith("/old||"));
  EXPECT_TRUE(all_gone());
}

TEST_F(HttpConnectionTest, HeadHasTheLengthAndNoBody) {
  start();
  const auto answer = ask("HEAD /a HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpConnectionTest, StreamsProgressAsChunks) {
  start();
  const auto answer = ask("POST /stream HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(answer, HasSubstr("4\r\none\n\r\n"));
  EXPECT_THAT(answer, EndsWith("6\r\nthree\n\r\n0\r\n\r\n"));
}

TEST_F(HttpConnectionTest, AConnectionGoesOnAfterAStream) {
  start();
  RawClient client(path_);
  client.send("POST /stream HTTP/1.1\r\n\r\n");
  client.receive("0\r\n\r\n");
  client.send("GET /n HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive("/n||"), EndsWith("/n||"));
}

TEST_F(HttpConnectionTest, ADroppedReplyIsAnInternalError) {
  start();
  EXPECT_THAT(ask("GET /drop HTTP/1.1\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpConnectionTest, AClientThatDoesNotReadIsClosed) {
  start({.write_timeout = 50ms});
  RawClient client(path_);
  std::string request =
      "POST / HTTP/1.1\r\nContent-Length: 1048576\r\n\r\n" + std::string(1u << 20, 'x');
  client.send(request);
  for (int i = 0; i < 200 && connections() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(connections(), 0u);
}

TEST_F(HttpConnectionTest, AReplyAfterTheClientHasGoneGoesNowhere) {
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

TEST_F(HttpConnectionTest, ATooLongHeaderIsRefused) {
  start({.header_bytes = 1024});
  const auto with = [](std::size_t bytes) {
    return "GET /h HTTP/1.1\r\nConnection: close\r\nX: " + std::string(bytes, 'x') + "\r\n\r\n";
  };
  EXPECT_THAT(ask(with(900)), EndsWith("/h||"));
  const auto refusal = ask(with(1100));
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(refusal, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(refusal, EndsWith("the request's header is too long\n"));
  // One that never ends is refused at the limit, not when memory is full.
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nX: " + std::string(20000, 'x')), StartsWith("HTTP/1.1 431 "));
}

TEST_F(HttpConnectionTest, ATooLongBodyIsRefused) {
  start();
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "))
      << "before any of it has arrived";
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
              StartsWith("HTTP/1.1 400 "));
  std::string chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20; ++i) chunks += "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  EXPECT_THAT(ask(chunks), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nContent-Length: 1048576\r\nConnection: close\r\n\r\n" +
                  std::string(1u << 20, 'x')),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpConnectionTest, WhatIsNoRequestIsRefused) {
  start();
  for (const auto* wrong :
       {"nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n"}) {
    EXPECT_THAT(ask(wrong), StartsWith("HTTP/1.1 400 ")) << wrong;
  }
  EXPECT_TRUE(all_gone());
}

// Nothing is handled, nothing is answered, nothing stays behind.
TEST_F(HttpConnectionTest, AClientThatGoesHalfWayLeavesNothing) {
  start();
  for (const auto* half : {"", "GET /hold HT", "GET /hold HTTP/1.1\r\nHost: x\r\n",
                           "POST /hold HTTP/1.1\r\nContent-Length: 10\r\n\r\nhalf",
                           "POST /hold HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha"}) {
    {
      RawClient(path_).send(half);
    }
    // A request of another client has been served after it: the server has seen it.
    EXPECT_THAT(ask("GET /n HTTP/1.1\r\nConnection: close\r\n\r\n"), EndsWith("/n||")) << half;
    EXPECT_TRUE(all_gone()) << half;
  }
  EXPECT_TRUE(thread_.run([this] { return held_.empty(); }));
}

TEST_F(HttpConnectionTest, AClientThatIsSilentForTooLongIsClosed) {
  start({.read_timeout = 50ms});
  EXPECT_EQ(RawClient(path_).receive(), "");
  for (const auto* half : {"GET / HT", "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"}) {
    RawClient client(path_);
    client.send(half);
    EXPECT_EQ(client.receive(), "") << half;
  }
}

TEST_F(HttpConnectionTest, BytesComeInChunksAndTheEndInTrailers) {
  start();
  const std::string answer =
      ask("POST /bytes HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
          "GET /next HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/octet-stream\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n4\r\nbody\r\n4\r\nbody\r\n0\r\nMariner-Exit: 7\r\n"));
  EXPECT_THAT(answer, EndsWith("/next||"));
  EXPECT_EQ(gone_, 0);
}

TEST_F(HttpConnectionTest, NoMoreIsMadeThanIsTaken) {
  start();
  {
    const RawClient client(path_);
    client.send("POST /flood HTTP/1.1\r\n\r\n");
    client.receive("ffff");
    int before = -1;
    while (before != floods_) {
      before = floods_;
      std::this_thread::sleep_for(50ms);
    }
    EXPECT_LT(before, 64) << "what a socket takes";
    EXPECT_EQ(gone_, 0);
  }
  for (int i = 0; i < 200 && gone_ == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(gone_, 1);
}

TEST_F(HttpConnectionTest, WhoGoesWhileNothingIsSentIsNoticed) {
  start();
  {
    const RawClient client(path_);
    client.send("GET /silence HTTP/1.1\r\n\r\n");
    EXPECT_FALSE(client.readable(50ms));
    EXPECT_EQ(gone_, 0);
  }
  for (int i = 0; i < 200 && gone_ == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(gone_, 1);
}

TEST_F(HttpConnectionTest, BytesThatNobodyTakesEndTheConnection) {
  start({.stream_timeout = 100ms});
  const RawClient client(path_);
  client.send("POST /flood HTTP/1.1\r\n\r\n");
  for (int i = 0; i < 200 && gone_ == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(gone_, 1);
}

TEST_F(HttpConnectionTest, BytesWithoutAnEndBreakOff) {
  start();
  const RawClient client(path_);
  client.send("POST /flood HTTP/1.1\r\n\r\n");
  client.receive("ffff");
  thread_.run([this] {
    held_.clear();
    return 0;
  });
  EXPECT_THAT(client.receive(), testing::Not(HasSubstr("0\r\n\r\n")));
}

// They are with the client, and the answer is dropped before that is known.
TEST_F(HttpConnectionTest, NothingIsMadeForAnAnswerThatWasDropped) {
  start();
  const RawClient client(path_);
  client.send("POST /break HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receive(), HasSubstr("two"));
  EXPECT_TRUE(all_gone());
  EXPECT_EQ(floods_, 0);
}

TEST_F(HttpConnectionTest, KnowsWhoConnected) {
  start();
  EXPECT_THAT(ask("GET /peer HTTP/1.1\r\nConnection: close\r\n\r\n"),
              EndsWith("\r\n\r\n" + std::to_string(::getpid())));
}

}  // namespace
}  // namespace mariner::web
