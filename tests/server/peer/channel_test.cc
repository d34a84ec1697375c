#include "server/peer/channel.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <boost/asio/write.hpp>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/peer/peer_rig.h"

namespace mariner::peer {
namespace {

using namespace std::chrono_literals;
using test::Loop;
using test::pattern;
using test::Relay;
using test::same_bytes;
using test::slice_of;
using test::TestCluster;

const TestCluster& cluster() {
  static const TestCluster north("north");
  return north;
}

class User final : public ChannelUser {
 public:
  void secured() override {
    is_secured = true;
    if (establishes) channel->establish();
  }
  void frame(std::string_view header, Payload payload) override {
    headers.emplace_back(header);
    payload_bytes += payload.size();
    last_payload = std::move(payload);
    if (closes_at == headers.size()) channel->close();
  }
  void writable() override { ++writables; }
  void closed(Error reason) override { ends.push_back(std::move(reason)); }
  ~User() override {
    if (channel) channel->close();
  }

  std::shared_ptr<Channel> channel;
  bool establishes = true;
  std::size_t closes_at = 0;
  bool is_secured = false;
  std::vector<std::string> headers;
  std::uint64_t payload_bytes = 0;
  Payload last_payload;
  int writables = 0;
  std::vector<Error> ends;
};

class ChannelTest : public testing::Test {
 protected:
  static constexpr FrameBounds kBounds{.header_bytes_max = 16, .payload_bytes_max = 0};

  std::shared_ptr<Channel> begin(Loop& loop, const std::string& node, ConnectedSocket socket,
                                 TlsRole role, User& user) {
    user.channel = Channel::begin(loop.environment(cluster().tls(node), options_),
                                  std::move(socket), role, kBounds, user);
    return user.channel;
  }
  // Both ends, each established by itself.
  void connect() {
    auto [dialed, accepted] = loop_.socket_pair();
    begin(loop_, "one", std::move(dialed), TlsRole::kDials, one_);
    begin(loop_, "two", std::move(accepted), TlsRole::kAccepts, two_);
    ASSERT_TRUE(loop_.run_until([&] { return one_.is_secured && two_.is_secured; }));
  }
  // One end of ours, and of the other the socket and, after shake_hands(), its TLS.
  void connect_to_raw() {
    auto [dialed, accepted] = loop_.socket_pair();
    raw_.emplace(std::move(dialed));
    raw_->socket.non_blocking(true);
    accepted_ = accepted.socket.native_handle();
    begin(loop_, "two", std::move(accepted), TlsRole::kAccepts, two_);
  }
  void shake_hands() {
    tls_.emplace(
        TlsStream::over(raw_->socket.native_handle(), cluster().tls("one"), TlsRole::kDials)
            .value());
    ASSERT_TRUE(loop_.run_until([&] {
      const auto outcome = tls_->handshake();
      return two_.is_secured && outcome && outcome->progress == TlsStream::Progress::kDone;
    }));
  }

  // What TCP has not acknowledged of what ours has written.
  [[nodiscard]] int unacknowledged_bytes() const {
    int bytes = 0;
    EXPECT_EQ(ioctl(accepted_, SIOCOUTQ, &bytes), 0);
    return bytes;
  }

  Loop loop_;
  ChannelOptions options_;
  User one_;
  User two_;
  std::optional<ConnectedSocket> raw_;
  int accepted_ = -1;  // the socket of the other end, which is ours
  std::optional<TlsStream> tls_;
};

TEST_F(ChannelTest, FramesGoBothWays) {
  connect();
  const Payload payload = pattern(5000);
  EXPECT_TRUE(one_.channel->send("to two", slice_of(payload)));
  EXPECT_TRUE(two_.channel->send("to one", {}));
  ASSERT_TRUE(loop_.run_until([&] { return !one_.headers.empty() && !two_.headers.empty(); }));
  EXPECT_EQ(two_.headers[0], "to two");
  EXPECT_TRUE(same_bytes(two_.last_payload, payload));
  EXPECT_EQ(one_.headers[0], "to one");
  EXPECT_FALSE(one_.last_payload);
}

TEST_F(ChannelTest, BytesThatComeAFewAtATime) {
  const Payload payload = pattern(700);
  const Payload large = pattern(40'000);
  for (const std::size_t piece : {1u, 2u, 5u, 23u, 1000u}) {
    Relay relay(loop_);
    User one;
    User two;
    begin(loop_, "one", relay.take_one(), TlsRole::kDials, one);
    begin(loop_, "two", relay.take_two(), TlsRole::kAccepts, two);
    const auto until = std::chrono::steady_clock::now() + 20s;
    const auto run = [&](auto&& ended) {
      while (!ended() && std::chrono::steady_clock::now() < until) {
        relay.pass_on(piece);
        loop_.poll();
      }
      return ended();
    };
    ASSERT_TRUE(run([&] { return one.is_secured && two.is_secured; })) << piece;
    ASSERT_TRUE(one.channel->send("a", slice_of(payload)));
    ASSERT_TRUE(one.channel->send("b", {}));
    ASSERT_TRUE(one.channel->send("c", slice_of(large)));
    ASSERT_TRUE(run([&] { return two.headers.size() == 3; })) << piece;
    EXPECT_EQ(two.headers, (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_TRUE(same_bytes(two.last_payload, large));
  }
}

TEST_F(ChannelTest, ThousandsOfSmallFramesTakeFewSystemCalls) {
  connect();
  const auto calls = [] {  // read() and write() so far: what OpenSSL calls
    std::ifstream io("/proc/self/io");
    std::string name;
    std::uint64_t value = 0;
    std::uint64_t sum = 0;
    while (io >> name >> value) sum += name == "syscr:" || name == "syscw:" ? value : 0;
    return sum;
  };
  constexpr std::size_t kFrames = 5000;
  const std::uint64_t before = calls();
  ASSERT_GT(before, 0u);
  for (std::size_t i = 0; i < kFrames; ++i) {
    ASSERT_TRUE(one_.channel->send("a header of some twenty", {}));
  }
  ASSERT_TRUE(loop_.run_until([&] { return two_.headers.size() == kFrames; }));
  // 155 kB in ten records, each written once; what is read comes in two records at a time or less.
  EXPECT_LE(calls() - before, 60u);
}

TEST_F(ChannelTest, ASilentClientIsCutAfterItsTime) {
  options_.handshake_time_max = 200ms;
  options_.heartbeat_interval = 50ms;
  connect_to_raw();
  ASSERT_TRUE(loop_.run_until([&] { return !two_.ends.empty(); }));
  EXPECT_EQ(two_.ends[0].code, ErrorCode::kUnavailable);
  EXPECT_NE(two_.ends[0].message.find("TLS was not agreed on"), std::string::npos);
  EXPECT_FALSE(two_.is_secured);
}

TEST_F(ChannelTest, SoIsOneThatNeverSaysWhoItIs) {
  options_.handshake_time_max = 200ms;
  options_.heartbeat_interval = 50ms;
  two_.establishes = false;
  connect_to_raw();
  shake_hands();
  ASSERT_TRUE(loop_.run_until([&] { return !two_.ends.empty(); }));
  EXPECT_NE(two_.ends[0].message.find("it has not said who it is"), std::string::npos);
}

TEST_F(ChannelTest, GarbageEndsIt) {
  connect_to_raw();
  boost::asio::write(raw_->socket, boost::asio::buffer(std::string(3000, '\x16')));
  ASSERT_TRUE(loop_.run_until([&] { return !two_.ends.empty(); }));
  EXPECT_EQ(two_.ends[0].code, ErrorCode::kProtocol);
  EXPECT_TRUE(two_.ends[0].message.starts_with("one's address: TLS 1.3 was expected"))
      << two_.ends[0].message;
}

TEST_F(ChannelTest, BeforeItIsEstablishedLittleIsTaken) {
  two_.establishes = false;
  connect();
  ASSERT_TRUE(one_.channel->send("sixteen bytes ok", {}));
  ASSERT_TRUE(loop_.run_until([&] { return two_.headers.size() == 1; }));
  ASSERT_TRUE(one_.channel->send("seventeen is much", {}));
  ASSERT_TRUE(loop_.run_until([&] { return two_.ends.size() == 1; }));
  EXPECT_EQ(two_.ends[0].code, ErrorCode::kProtocol);
  ASSERT_TRUE(loop_.run_until([&] { return one_.ends.size() == 1; }));
  EXPECT_EQ(one_.ends[0].code, ErrorCode::kUnavailable);
  EXPECT_FALSE(one_.channel->send("more", {}));
}

TEST_F(ChannelTest, HeartbeatsKeepAnIdleChannelAlive) {
  options_.heartbeat_interval = 20ms;
  options_.silence_max = 100ms;
  connect();
  loop_.run_for(500ms);
  EXPECT_TRUE(one_.ends.empty() && two_.ends.empty());
  EXPECT_TRUE(one_.headers.empty());
}

TEST_F(ChannelTest, WhoSaysNothingIsDeadWithinTheBound) {
  options_.heartbeat_interval = 50ms;
  options_.silence_max = 300ms;
  connect_to_raw();
  shake_hands();
  const auto from = std::chrono::steady_clock::now();
  ASSERT_TRUE(loop_.run_until([&] { return !two_.ends.empty(); }));
  const auto time = std::chrono::steady_clock::now() - from;
  EXPECT_GE(time, 250ms);
  EXPECT_LE(time, 1500ms);
  EXPECT_EQ(two_.ends[0].code, ErrorCode::kUnavailable);
  EXPECT_NE(two_.ends[0].message.find("nothing has come from it"), std::string::npos);
}

TEST_F(ChannelTest, WhoWasAsleepItselfLooksFirst) {
  options_.heartbeat_interval = 50ms;
  options_.silence_max = 300ms;
  connect_to_raw();
  shake_hands();
  loop_.run_for(20ms);
  // The other has spoken while this thread did something else for too long.
  const std::array<std::byte, kFramePrefixBytes> heartbeat{};
  ASSERT_TRUE(tls_->write(heartbeat));
  std::this_thread::sleep_for(400ms);
  loop_.io().restart();
  loop_.io().poll();
  EXPECT_TRUE(two_.ends.empty());
}

TEST_F(ChannelTest, WhoTakesNothingCostsBoundedMemoryAndIsCut) {
  options_.heartbeat_interval = 20ms;
  options_.silence_max = 200ms;
  options_.stall_max = 600ms;
  options_.queued_bytes_max = 20u << 20;
  connect_to_raw();
  shake_hands();
  const Payload payload = pattern(1 << 20);
  int taken = 0;
  const std::array<std::byte, kFramePrefixBytes> heartbeat{};
  const auto from = std::chrono::steady_clock::now();
  ASSERT_TRUE(loop_.run_until([&] {
    (void)tls_->write(heartbeat);  // alive, but it reads nothing
    while (two_.ends.empty() && two_.channel->send("more", slice_of(payload))) ++taken;
    EXPECT_LE(two_.channel->queued_bytes(), options_.queued_bytes_max);
    return !two_.ends.empty();
  }));
  EXPECT_GE(std::chrono::steady_clock::now() - from, 500ms);
  EXPECT_NE(two_.ends[0].message.find("it has taken nothing for"), std::string::npos)
      << two_.ends[0].message;
  EXPECT_LE(taken, 40);  // the bound, and what the kernel keeps
}

TEST_F(ChannelTest, AtTheBoundItRefusesAndSaysWhenThereIsRoom) {
  options_.queued_bytes_max = 17u << 20;
  connect();
  const Payload payload = pattern(1 << 20);
  std::uint64_t sent = 0;
  while (one_.channel->send("much", slice_of(payload))) sent += payload.size();
  EXPECT_EQ(sent, 16u << 20);
  EXPECT_FALSE(one_.channel->send("much", slice_of(payload)));
  EXPECT_EQ(one_.writables, 0);
  ASSERT_TRUE(loop_.run_until([&] { return one_.writables > 0; }));
  EXPECT_LE(one_.channel->queued_bytes(), options_.queued_bytes_max / 2);
  EXPECT_TRUE(one_.channel->send("much", slice_of(payload)));
  ASSERT_TRUE(loop_.run_until([&] { return two_.payload_bytes == sent + payload.size(); }));
  EXPECT_EQ(one_.writables, 1);
}

TEST_F(ChannelTest, WhatItsOwnerHoldsHasABoundOfItsOwn) {
  options_.queued_bytes_max = 17u << 20;
  options_.held_bytes_max = 40u << 20;
  connect();
  const Payload payload = pattern(1 << 20);
  std::uint64_t sent = 0;
  while (one_.channel->send_held("much", slice_of(payload))) sent += payload.size();
  EXPECT_EQ(sent, 39u << 20);
  // What others send has room all the same.
  while (one_.channel->send("more", slice_of(payload))) sent += payload.size();
  EXPECT_EQ(sent, (39u + 16u) << 20);
  ASSERT_TRUE(loop_.run_until([&] { return two_.payload_bytes == sent; }));
  EXPECT_EQ(one_.writables, 1);
}

TEST_F(ChannelTest, PayloadsOf16MiB) {
  connect();
  const Payload payload = pattern(16u << 20);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(one_.channel->send("large", slice_of(payload)));
  ASSERT_TRUE(loop_.run_until([&] { return two_.headers.size() == 3; }));
  EXPECT_TRUE(same_bytes(two_.last_payload, payload));
  EXPECT_EQ(two_.payload_bytes, 3 * payload.size());
}

TEST_F(ChannelTest, ClosedInTheMiddleOfAFrameItHandsOnNothingOfIt) {
  connect_to_raw();
  shake_hands();
  const FramePrefix prefix = pack_prefix({4, 100'000});
  ASSERT_TRUE(tls_->write(prefix));
  ASSERT_TRUE(tls_->write(pattern(50'004).bytes()));
  loop_.run_for(20ms);
  raw_->socket.close();
  ASSERT_TRUE(loop_.run_until([&] { return !two_.ends.empty(); }));
  EXPECT_TRUE(two_.headers.empty());
  EXPECT_EQ(two_.ends[0].code, ErrorCode::kUnavailable);
}

TEST_F(ChannelTest, ClosedFromWithinAFrameNothingFollows) {
  two_.closes_at = 2;
  connect();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(one_.channel->send("frame", {}));
  ASSERT_TRUE(loop_.run_until([&] { return !one_.ends.empty(); }));
  loop_.run_for(20ms);
  EXPECT_EQ(two_.headers.size(), 2u);
  EXPECT_TRUE(two_.ends.empty());  // it was its own wish
}

TEST_F(ChannelTest, ClosedBeforeItHasBegun) {
  auto [dialed, accepted] = loop_.socket_pair();
  begin(loop_, "one", std::move(dialed), TlsRole::kDials, one_);
  one_.channel->close();
  loop_.run_for(20ms);
  EXPECT_FALSE(one_.is_secured);
  EXPECT_TRUE(one_.ends.empty());
}

// Whatever is sent to the raw end is lost in front of it for a while: nothing but heartbeats, soon,
// lets TCP find out.
TEST_F(ChannelTest, WhatIsNotAcknowledgedIsFollowedByHeartbeats) {
  options_.heartbeat_interval = 30s;
  options_.silence_max = 60s;
  options_.probe_after = 1ms;
  connect_to_raw();
  shake_hands();
  ASSERT_TRUE(loop_.run_until([&] { return unacknowledged_bytes() == 0; }));

  sock_filter nothing{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
  const sock_fprog deaf{.len = 1, .filter = &nothing};
  const int raw = raw_->socket.native_handle();
  ASSERT_EQ(setsockopt(raw, SOL_SOCKET, SO_ATTACH_FILTER, &deaf, sizeof(deaf)), 0);
  ASSERT_TRUE(two_.channel->send("x", {}));
  constexpr int kHeartbeatRecordBytes = kFramePrefixBytes + 22;  // RFC 8446 5.2: 5 + 1 + 16
  constexpr int kFrameRecordBytes = kHeartbeatRecordBytes + 1;
  EXPECT_TRUE(loop_.run_until(
      [&] { return unacknowledged_bytes() >= kFrameRecordBytes + 3 * kHeartbeatRecordBytes; }));

  const int none = 0;
  ASSERT_EQ(setsockopt(raw, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)), 0);
  std::vector<std::byte> read;
  EXPECT_TRUE(loop_.run_until([&] {
    std::array<std::byte, 4096> place;
    const auto outcome = tls_->read(place);
    EXPECT_TRUE(outcome);
    if (outcome && outcome->progress == TlsStream::Progress::kDone) {
      read.insert(read.end(), place.begin(), place.begin() + outcome->bytes);
    }
    return read.size() >= 9 + 3 * kFramePrefixBytes;
  }));
  ASSERT_GE(read.size(), 9);
  EXPECT_EQ(read[8], std::byte{'x'});
  EXPECT_TRUE(
      std::all_of(read.begin() + 9, read.end(), [](std::byte b) { return b == std::byte{0}; }));
}

}  // namespace
}  // namespace mariner::peer
