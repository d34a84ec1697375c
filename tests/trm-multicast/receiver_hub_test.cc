#include "trm-multicast/receiver_hub.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/payload_crc.h"

namespace mariner::trm {
namespace {

using std::chrono::milliseconds;

constexpr ConnectionNumber kOne{1};
constexpr ConnectionNumber kTwo{2};

// What the hub wants done, in words.
class ReceiverHubTest : public ::testing::Test, private ReceiverHub::Wires {
 protected:
  ReceiverHubTest() {
    hub_.connected(kOne);
    hub_.connected(kTwo);
  }

  Result<void> listen(const Group& group) override {
    if (!listens_) return Error{ErrorCode::kNotFound, "no such interface"};
    words_ += "listen:" + std::to_string(group.port) + " ";
    return {};
  }
  void leave(const Group& group) override { words_ += "leave:" + std::to_string(group.port) + " "; }
  void deliver(ConnectionNumber from, std::string_view header, Payload payload) override {
    words_ += std::string(header) + std::to_string(from.value) + ":" +
              std::to_string(payload.size()) + " ";
  }
  void tell(ConnectionNumber to, const FromReceiver& message) override {
    static const char* const kNames[] = {"cannot", "missing", "report"};
    words_ += kNames[message.index()] + std::to_string(to.value) + " ";
  }
  void end(ConnectionNumber connection, const Error& /*reason*/) override {
    words_ += "end" + std::to_string(connection.value) + " ";
  }

  static OpenStream open(std::uint32_t stream, std::uint16_t port = 6003) {
    return {.stream = {stream}, .group = "239.1.1.1", .port = port, .window_bytes = 1u << 20};
  }
  void begin(ConnectionNumber from, std::uint32_t stream) {
    hub_.told(from, open(stream));
    hub_.told(from, Admit{{stream}, {0}});
    (void)said();
  }
  Reference reference(std::uint32_t stream) const {
    return {{stream}, {0}, 4096, payload_crc32c({payload_, 0, 4096})};
  }
  void arrives(std::uint32_t stream) {
    std::vector<std::byte> bytes(4096 + kDatagramOverheadBytes);
    sealer_.seal({{stream}, DatagramKind::kPayload, {0}, 4096, 0}, payload_.bytes(), bytes);
    hub_.datagram(bytes, now_);
  }
  std::string said() { return std::exchange(words_, {}); }

  ReceiverHub hub_{*this, {}};
  Sealer sealer_{open(1).key, false};
  const Payload payload_ = Payload::zeroed(4096);
  std::string words_;
  bool listens_ = true;
  std::chrono::nanoseconds now_ = std::chrono::seconds(1);
};

TEST_F(ReceiverHubTest, FramesOfAConnectionWithoutStreamsPassThrough) {
  hub_.frame(kOne, "a", Payload::zeroed(10));
  EXPECT_EQ(said(), "a1:10 ");
}

TEST_F(ReceiverHubTest, AGroupIsListenedToAsLongAsAStreamIsOpen) {
  hub_.told(kOne, open(1));
  hub_.told(kOne, open(2));
  hub_.told(kTwo, open(3, 7000));
  EXPECT_EQ(said(), "listen:6003 listen:7000 ");
  hub_.told(kOne, CloseStream{{1}});
  EXPECT_EQ(said(), "");
  hub_.told(kOne, CloseStream{{2}});
  EXPECT_EQ(said(), "leave:6003 ");
  hub_.disconnected(kTwo);
  EXPECT_EQ(said(), "leave:7000 ");
}

TEST_F(ReceiverHubTest, FramesWaitForTheirPayloadsAndForThoseBefore) {
  begin(kOne, 1);
  hub_.frame(kOne, "a", reference(1), now_);
  hub_.frame(kOne, "b", Payload{});
  hub_.frame(kTwo, "x", Payload{});
  EXPECT_EQ(said(), "x2:0 ");
  arrives(1);
  EXPECT_EQ(said(), "a1:4096 b1:0 ");
}

TEST_F(ReceiverHubTest, WhatIsMissingIsAskedForAndWhatCameIsReported) {
  begin(kOne, 1);
  hub_.flush(now_);
  (void)said();
  hub_.frame(kOne, "a", reference(1), now_);
  now_ = hub_.next_at().value();
  hub_.flush(now_);
  EXPECT_EQ(said(), "missing1 ");
  hub_.told(kOne, Repair{{1}, {{0}, 0, 4096}, {payload_, 0, 4096}});
  EXPECT_EQ(said(), "a1:4096 ");
  now_ += milliseconds(20);
  hub_.flush(now_);
  EXPECT_EQ(said(), "report1 ");
  EXPECT_EQ(hub_.next_at(), std::nullopt);
  EXPECT_EQ(hub_.repaired_bytes(), 4096u);
}

TEST_F(ReceiverHubTest, WhoCannotListenSaysSoAndGoesOn) {
  listens_ = false;
  hub_.told(kOne, open(1));
  EXPECT_EQ(said(), "cannot1 ");
  hub_.told(kOne, CloseStream{{1}});
  hub_.frame(kOne, "a", Payload{});
  EXPECT_EQ(said(), "a1:0 ");
}

TEST_F(ReceiverHubTest, WhoCouldNotListenDoesWhenItIsAskedAgainAndCan) {
  listens_ = false;
  hub_.told(kOne, open(1));
  EXPECT_EQ(said(), "cannot1 ");
  hub_.told(kOne, CloseStream{{1}});
  hub_.told(kOne, open(1));
  EXPECT_EQ(said(), "cannot1 ");
  listens_ = true;
  hub_.told(kOne, CloseStream{{1}});
  hub_.told(kOne, open(1));
  EXPECT_EQ(said(), "listen:6003 ");
  EXPECT_FALSE(hub_.unused(kOne));
  EXPECT_TRUE(hub_.unused(kTwo));
}

TEST_F(ReceiverHubTest, ANumberThatAnotherNodeUsesIsNotTaken) {
  begin(kOne, 1);
  OpenStream another = open(1);
  another.key.key[0] = std::byte{1};
  hub_.told(kTwo, another);
  EXPECT_EQ(said(), "cannot2 ");
  hub_.disconnected(kOne);
  EXPECT_EQ(said(), "leave:6003 ");
}

TEST_F(ReceiverHubTest, WhoHasDialledAnewIsHeardThereBeforeTheOldConnectionIsKnownToBeGone) {
  begin(kOne, 1);
  begin(kTwo, 1);
  hub_.frame(kTwo, "a", reference(1), now_);
  arrives(1);
  EXPECT_EQ(said(), "a2:4096 ");
  hub_.disconnected(kOne);
  EXPECT_EQ(said(), "");
  hub_.frame(kTwo, "b", reference(1), now_);
  EXPECT_EQ(said(), "b2:4096 ");
  hub_.told(kTwo, CloseStream{{1}});
  EXPECT_EQ(said(), "leave:6003 ");
}

TEST_F(ReceiverHubTest, WhatTheOldConnectionStillSaysTakesNothingFromTheNewOne) {
  begin(kTwo, 1);
  begin(kOne, 1);
  hub_.frame(kTwo, "a", reference(1), now_);
  arrives(1);
  EXPECT_EQ(said(), "a2:4096 ");
  hub_.disconnected(kOne);
  arrives(1);
  EXPECT_EQ(hub_.strange_datagrams(), 0u);
}

TEST_F(ReceiverHubTest, MoreStreamsThanItTakesPartInAreRefused) {
  for (std::uint32_t i = 1; i <= kStreamsMax; ++i) begin(kOne, i);
  hub_.told(kOne, open(100));
  hub_.told(kOne, open(101));
  EXPECT_EQ(said(), "cannot1 cannot1 ");
  hub_.told(kOne, CloseStream{{1}});
  hub_.told(kOne, CloseStream{{100}});
  hub_.told(kOne, open(100));
  EXPECT_EQ(said(), "");
}

TEST_F(ReceiverHubTest, AStreamMayEndOnItsNewConnectionBeforeTheOldOneIsGone) {
  begin(kOne, 1);
  begin(kTwo, 1);
  hub_.told(kTwo, CloseStream{{1}});
  arrives(1);
  EXPECT_EQ(hub_.strange_datagrams(), 1u);
  hub_.disconnected(kOne);
  EXPECT_EQ(said(), "leave:6003 ");
}

TEST_F(ReceiverHubTest, WhoDoesNotKeepToTheProtocolIsEndedOnce) {
  hub_.frame(kOne, "a", reference(1), now_);
  hub_.frame(kOne, "b", Payload{});
  hub_.told(kOne, Admit{{1}, {0}});
  EXPECT_EQ(said(), "end1 ");
  hub_.frame(kTwo, "c", Payload{});
  EXPECT_EQ(said(), "c2:0 ");
}

TEST_F(ReceiverHubTest, StrangeDatagramsAreCounted) {
  begin(kOne, 1);
  arrives(2);  // nobody's
  hub_.datagram(payload_.bytes(), now_);
  hub_.datagram({}, now_);
  Sealer other(StreamKey{.key = {std::byte{1}}, .salt = {}}, false);
  std::vector<std::byte> bytes(100 + kDatagramOverheadBytes);
  other.seal({{1}, DatagramKind::kPayload, {0}, 100, 0}, payload_.bytes().first(100), bytes);
  hub_.datagram(bytes, now_);
  EXPECT_EQ(hub_.strange_datagrams(), 4u);
  EXPECT_EQ(hub_.strange().malformed, 2u);
  EXPECT_EQ(hub_.strange().unknown, 1u);
  EXPECT_EQ(hub_.strange().unsealed, 1u);
  EXPECT_EQ(said(), "");
}

}  // namespace
}  // namespace mariner::trm
