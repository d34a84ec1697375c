#include "server/peer/dialer.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using test::Loop;

struct Dial {
  Dial(Loop& loop, const Endpoint& address, std::chrono::nanoseconds time_max)
      : dialer(Dialer::dial(loop.io(), loop.executor(), address, time_max,
                            [this](Result<ConnectedSocket> socket) {
                              ++calls;
                              result.emplace(std::move(socket));
                            })) {}
  int calls = 0;
  std::optional<Result<ConnectedSocket>> result;
  std::shared_ptr<Dialer> dialer;
};

TEST(Dialer, Connects) {
  Loop loop;
  tcp::acceptor listener(loop.io(), {boost::asio::ip::address_v4::loopback(), 0});
  const Endpoint address{.address = "127.0.0.1", .port = listener.local_endpoint().port()};
  Dial dial(loop, address, 20ms);
  ASSERT_TRUE(loop.run_until([&] { return dial.result.has_value(); }));
  ASSERT_TRUE(*dial.result);
  EXPECT_EQ((*dial.result)->remote, to_string(address));
  loop.run_for(40ms);  // its time is over, and nothing more is said
  EXPECT_EQ(dial.calls, 1);
  EXPECT_TRUE((*dial.result)->socket.is_open());
}

TEST(Dialer, NobodyListens) {
  Loop loop;
  Endpoint address{.address = "127.0.0.1", .port = 0};
  {
    tcp::acceptor listener(loop.io(), {boost::asio::ip::address_v4::loopback(), 0});
    address.port = listener.local_endpoint().port();
  }
  Dial dial(loop, address, 5s);
  ASSERT_TRUE(loop.run_until([&] { return dial.result.has_value(); }));
  ASSERT_FALSE(*dial.result);
  EXPECT_EQ(dial.result->error().code, ErrorCode::kUnavailable);
  EXPECT_NE(dial.result->error().message.find(to_string(address)), std::string::npos);
}

TEST(Dialer, AnAddressThatDoesNotAnswerIsGivenUp) {
  Loop loop;
  // A listener whose backlog is full: the kernel drops what comes.
  tcp::acceptor listener(loop.io(), tcp::v4());
  listener.bind({boost::asio::ip::address_v4::loopback(), 0});
  listener.listen(0);
  const Endpoint address{.address = "127.0.0.1", .port = listener.local_endpoint().port()};
  Dial first(loop, address, 5s);
  ASSERT_TRUE(loop.run_until([&] { return first.result.has_value(); }));
  Dial second(loop, address, 50ms);
  ASSERT_TRUE(loop.run_until([&] { return second.result.has_value(); }));
  ASSERT_FALSE(*second.result);
  EXPECT_NE(second.result->error().message.find("no answer within"), std::string::npos);
}

TEST(Dialer, StoppedItSaysNothing) {
  Loop loop;
  tcp::acceptor listener(loop.io(), {boost::asio::ip::address_v4::loopback(), 0});
  Dial dial(loop, {.address = "127.0.0.1", .port = listener.local_endpoint().port()}, 10ms);
  dial.dialer->stop();
  loop.run_for(30ms);
  EXPECT_EQ(dial.calls, 0);
}

TEST(Dialer, WhatIsNoAddress) {
  Loop loop;
  Dial dial(loop, {.address = "nowhere", .port = 1}, 1s);
  ASSERT_TRUE(loop.run_until([&] { return dial.result.has_value(); }));
  EXPECT_FALSE(*dial.result);
}

}  // namespace
}  // namespace mariner::peer
