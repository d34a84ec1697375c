#include "server/peer/connection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using namespace std::chrono_literals;
using test::End;
using test::Loop;
using test::Pair;
using test::pattern;
using test::same_bytes;
using test::slice_of;
using test::TestCluster;

TEST(Connection, EachKnowsWhoTheOtherIs) {
  Loop loop;
  const Pair pair(loop);
  EXPECT_EQ(pair.one.connection->peer(), (NodeName{"north", "two"}));
  EXPECT_EQ(pair.two.connection->peer(), (NodeName{"north", "one"}));
}

TEST(Connection, FramesComeWholeAndInOrder) {
  Loop loop;
  Pair pair(loop);
  std::vector<Payload> payloads;
  for (unsigned i = 0; i < 300; ++i) {
    payloads.push_back(i % 7 == 0 ? Payload{} : pattern(i * i * 13 % 90'000 + 1, i));
    ASSERT_TRUE(pair.one.connection->send(std::to_string(i), slice_of(payloads.back())));
  }
  const auto& frames = pair.two.recorder.frames;
  ASSERT_TRUE(loop.run_until([&] { return frames.size() == payloads.size(); }));
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_EQ(frames[i].header, std::to_string(i));
    EXPECT_TRUE(same_bytes(frames[i].payload, payloads[i])) << i;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frames[i].payload.data()) % kBlockBytes, 0u);
  }
}

TEST(Connection, PartOfAPayload) {
  Loop loop;
  Pair pair(loop);
  const Payload payload = pattern(10'000);
  ASSERT_TRUE(
      pair.one.connection->send("part", {.payload = payload, .offset = 4096, .length = 100}));
  ASSERT_TRUE(loop.run_until([&] { return pair.two.recorder.frames.size() == 1; }));
  EXPECT_TRUE(same_bytes(pair.two.recorder.frames[0].payload,
                         Payload::copy_of(payload.bytes().subspan(4096, 100))));
}

TEST(Connection, TheFirstFrameMayComeWithTheHello) {
  Loop loop;
  const TestCluster cluster("north");
  auto [dialed, accepted] = loop.socket_pair();
  End one;
  End two;
  one.connection = Connection::dialed(loop.environment(cluster.tls("one")), std::move(dialed),
                                      "two", [&](Result<void> result) {
                                        ASSERT_TRUE(result);
                                        one.connection->observe(one.recorder);
                                        EXPECT_TRUE(one.connection->send("at once", {}));
                                      });
  two.connection =
      Connection::accepted(loop.environment(cluster.tls("two")), std::move(accepted), two.take());
  ASSERT_TRUE(loop.run_until([&] { return two.recorder.frames.size() == 1; }));
  EXPECT_EQ(two.recorder.frames[0].header, "at once");
}

TEST(Connection, TheEndIsToldOnceWithItsReason) {
  Loop loop;
  Pair pair(loop);
  pair.one.connection.reset();
  ASSERT_TRUE(loop.run_until([&] { return !pair.two.recorder.ends.empty(); }));
  loop.run_for(50ms);
  ASSERT_EQ(pair.two.recorder.ends.size(), 1u);
  EXPECT_EQ(pair.two.recorder.ends[0].code, ErrorCode::kUnavailable);
  EXPECT_NE(pair.two.recorder.ends[0].message.find("it has closed the connection"),
            std::string::npos);
  EXPECT_FALSE(pair.two.connection->send("too late", {}));
}

TEST(Connection, DestroyedFromWithinAFrame) {
  Loop loop;
  Pair pair(loop);
  pair.two.recorder.on_received = [&] { pair.two.connection.reset(); };
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(pair.one.connection->send("frame", {}));
  ASSERT_TRUE(loop.run_until([&] { return !pair.one.recorder.ends.empty(); }));
  EXPECT_EQ(pair.two.recorder.frames.size(), 1u);
}

// Whatever a connection carries when it breaks: what has been received is the beginning of what was
// sent, whole, and each end hears of the end once.
TEST(Connection, BrokenAtAnyByte) {
  Loop loop;
  const TestCluster cluster("north");
  const auto one_tls = cluster.tls("one");
  const auto two_tls = cluster.tls("two");
  const std::vector<Payload> payloads{Payload{}, pattern(700), pattern(20'000, 2),
                                      pattern(5000, 3)};
  std::size_t handed_over = 0;
  std::size_t refused = 0;
  for (std::size_t bytes_max = 0; bytes_max < 33'000; bytes_max += 97 + bytes_max / 20) {
    test::Relay relay(loop);
    End one;
    End two;
    one.connection =
        Connection::dialed(loop.environment(one_tls), relay.take_one(), "two", one.take());
    two.connection = Connection::accepted(loop.environment(two_tls), relay.take_two(), two.take());
    bool sent = false;
    std::size_t left = bytes_max;
    const auto heard = [](const End& end) {
      return end.refusals.size() + end.recorder.ends.size();
    };
    ASSERT_TRUE(loop.run_until([&] {
      if (one.established && !std::exchange(sent, true)) {
        for (std::size_t i = 0; i < payloads.size(); ++i) {
          EXPECT_TRUE(one.connection->send(std::to_string(i), slice_of(payloads[i])));
        }
      }
      for (int i = 0; i < 50 && left > 0; ++i) {
        left -= std::min(left, relay.pass_on(std::min<std::size_t>(left, 1000)));
        loop.poll();
      }
      if (left == 0 || two.recorder.frames.size() == payloads.size()) relay.hang_up();
      return heard(one) > 0 && heard(two) > 0;
    })) << bytes_max;
    loop.poll();
    EXPECT_EQ(heard(one), 1u);
    EXPECT_EQ(heard(two), 1u);
    const auto& frames = two.recorder.frames;
    ASSERT_LE(frames.size(), payloads.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
      EXPECT_EQ(frames[i].header, std::to_string(i));
      EXPECT_TRUE(same_bytes(frames[i].payload, payloads[i]));
    }
    handed_over += frames.size();
    refused += two.refusals.size();
  }
  // It broke before, between and after.
  EXPECT_GT(handed_over, payloads.size());
  EXPECT_GT(refused, 3u);
}

TEST(Connection, AStoppedNodeIsDeadWithinTheBound) {
  Loop loop;
  Loop stopped;
  const TestCluster cluster("north");
  const ChannelOptions options{.heartbeat_interval = 50ms, .silence_max = 300ms};
  // The two ends run on loops of their own, so that one can stand still.
  auto [dialed, accepted] = loop.socket_pair();
  ConnectedSocket moved{boost::asio::ip::tcp::socket(stopped.io(), boost::asio::ip::tcp::v4(),
                                                     accepted.socket.release()),
                        accepted.remote};
  End one;
  End two;
  one.connection = Connection::dialed(loop.environment(cluster.tls("one"), options),
                                      std::move(dialed), "two", one.take());
  two.connection = Connection::accepted(stopped.environment(cluster.tls("two"), options),
                                        std::move(moved), two.take());
  ASSERT_TRUE(loop.run_until([&] {
    stopped.io().restart();
    stopped.io().poll();
    return one.established && two.established;
  }));
  const auto from = std::chrono::steady_clock::now();
  ASSERT_TRUE(loop.run_until([&] { return !one.recorder.ends.empty(); }));
  EXPECT_LE(std::chrono::steady_clock::now() - from, 1500ms);
  EXPECT_NE(one.recorder.ends[0].message.find("nothing has come from it"), std::string::npos);
}

TEST(Connection, MismatchesAreRefusedAndNameBoth) {
  Loop loop;
  const TestCluster cluster("north");
  const TestCluster same_name("north");
  {
    Pair pair(loop, loop.environment(cluster.tls("one")), loop.environment(cluster.tls("two")),
              "three");
    ASSERT_EQ(pair.one.refusals.size(), 1u);
    EXPECT_EQ(pair.one.refusals[0].code, ErrorCode::kProtocol);
    EXPECT_EQ(pair.one.refusals[0].message,
              "two's address: the node at this address: expected three, found two");
  }
  {
    Pair pair(loop, loop.environment(same_name.tls("one")), loop.environment(cluster.tls("two")));
    EXPECT_FALSE(pair.one.established || pair.two.established);
    ASSERT_EQ(pair.one.refusals.size(), 1u);
    ASSERT_EQ(pair.two.refusals.size(), 1u);
  }
  {
    Pair pair(loop, loop.environment(cluster.tls("same")), loop.environment(cluster.tls("same")),
              "same");
    EXPECT_FALSE(pair.one.established || pair.two.established);
    ASSERT_EQ(pair.two.refusals.size(), 1u);
    EXPECT_NE(pair.two.refusals[0].message.find("own name, same"), std::string::npos);
  }
}

// Another version of ourselves, or another program with a certificate of ours: TLS is good, what it
// says is not.
TEST(Connection, HellosThatAreNone) {
  const TestCluster cluster("north");
  for (const auto& [bytes, words] : std::vector<std::pair<std::string, std::string>>{
           {std::string("\2\0\0\0\0\0\0\0\x08\x07", 10), "version: expected 2, found 7"},
           {std::string("\2\0\0\0\0\0\0\0\xff\xff", 10), "no hello"},
           {std::string("\0\0\1\0\0\0\0\0", 8), "at most 4096 bytes are taken, 65536"},
           {std::string("\2\0\0\0\1\0\0\0", 8), "at most 0 bytes are taken, 1"},
           {"GET / HTTP/1.1\r\n\r\n", "bytes are taken"}}) {
    Loop loop;
    auto [dialed, accepted] = loop.socket_pair();
    End two;
    two.connection =
        Connection::accepted(loop.environment(cluster.tls("two")), std::move(accepted), two.take());
    dialed.socket.non_blocking(true);
    auto tls =
        TlsStream::over(dialed.socket.native_handle(), cluster.tls("one"), TlsRole::kDials).value();
    ASSERT_TRUE(loop.run_until([&] {
      const auto outcome = tls.handshake();
      return outcome && outcome->progress == TlsStream::Progress::kDone;
    }));
    ASSERT_TRUE(tls.write(std::as_bytes(std::span(bytes))));
    ASSERT_TRUE(loop.run_until([&] { return !two.refusals.empty(); }));
    EXPECT_NE(two.refusals[0].message.find(words), std::string::npos) << two.refusals[0].message;
  }
}

}  // namespace
}  // namespace mariner::peer
