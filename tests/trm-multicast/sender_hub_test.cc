#include "trm-multicast/sender_hub.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mariner::trm {
namespace {

using std::chrono::milliseconds;

constexpr PeerNumber kOne{1};
constexpr PeerNumber kTwo{2};
constexpr PeerNumber kThree{3};
constexpr FlowNumber kFlow{7};
const Group kGroup{"239.192.7.1", 6003};

// What the hub wants done, in words.
class SenderHubTest : public ::testing::Test, private SenderHub::Wires {
 protected:
  SenderHubTest() {
    for (const PeerNumber peer : {kOne, kTwo, kThree}) hub_.connected(peer);
  }

  void frame(PeerNumber to, std::string header, PayloadSlice payload,
             const std::optional<Reference>& reference) override {
    words_ += header + std::to_string(to.value) +
              (reference            ? "@"
               : payload.length > 0 ? "+"
                                    : "") +
              " ";
  }
  void tell(PeerNumber to, const FromSender& message) override {
    if (const auto* open = std::get_if<OpenStream>(&message)) streams_[to] = open->stream;
    static const char* const kNames[] = {"open", "admit", "dismiss", "close", "repair"};
    told_ += kNames[message.index()] + std::to_string(to.value) + " ";
  }
  bool multicast(const Group& to, std::span<const std::byte> datagrams,
                 std::size_t datagram_bytes) override {
    EXPECT_EQ(to, kGroup);
    if (blocked_ || takes_ == 0) return false;
    --takes_;
    ++buffers_;
    for (std::size_t at = 0; at < datagrams.size(); at += datagram_bytes) {
      const auto parsed =
          parse(datagrams.subspan(at, std::min(datagram_bytes, datagrams.size() - at)));
      EXPECT_TRUE(parsed.has_value());
      probes_ += parsed->header.kind == DatagramKind::kProbe ? 1 : 0;
      multicast_[parsed->header.stream] += parsed->body.size();
      bytes_ += parsed->body.size();
      words_ += parsed->header.kind == DatagramKind::kPayload ? "*" : "";
    }
    return true;
  }
  std::size_t multicast_all(const Group& to, std::span<DatagramBatch> batches) override {
    const std::size_t datagrams = std::exchange(takes_datagrams_, 0);
    if (datagrams == 0) return Wires::multicast_all(to, batches);
    DatagramBatch& first = batches.front();
    const std::size_t bytes = datagrams * first.datagram_bytes;
    EXPECT_TRUE(multicast(to, first.bytes.first(bytes), first.datagram_bytes));
    first.bytes = first.bytes.subspan(bytes);
    return 0;
  }
  void changed(const SenderHub::Change& change) override {
    changes_ += (change.admitted ? "in" : "out") + std::to_string(change.peer.value) + " ";
  }
  void random(std::span<std::byte> to) override {
    for (std::byte& each : to) each = static_cast<std::byte>(++random_);
  }

  void begin() {
    hub_.begin_flow(kFlow, kGroup, {kOne, kTwo, kThree});
    for (int i = 0; i < 12; ++i) {
      now_ += milliseconds(50);
      hub_.tick(now_);
      report_all();
    }
    hub_.flush(now_);
    EXPECT_EQ(changes_, "in1 in2 in3 ");
    words_.clear();
  }
  void report_all() {
    for (const auto& [peer, stream] : streams_) {
      const Report report{.stream = stream,
                          .through = {1u << 30},
                          .bytes = bytes_,
                          .clock = now_,
                          .probes = probes_,
                          .largest_probe = 1440};
      EXPECT_TRUE(hub_.received(peer, report, now_).has_value());
    }
  }
  void send(const std::string& header, const std::vector<PeerNumber>& to,
            std::size_t bytes = 4096) {
    const Payload payload = bytes > 0 ? Payload::zeroed(bytes) : Payload{};
    for (const PeerNumber peer : to) hub_.send(peer, kFlow, header, {payload, 0, bytes});
  }
  std::string flushed() {
    hub_.flush(now_);
    return std::exchange(words_, {});
  }

  SenderHub hub_{*this, {}};
  std::map<PeerNumber, StreamId> streams_;
  std::string words_;
  std::string told_;
  std::string changes_;
  std::map<StreamId, std::uint64_t> multicast_;  // bytes of bodies
  std::uint64_t probes_ = 0;
  std::uint64_t bytes_ = 0;
  int buffers_ = 0;                  // that were given to the socket
  int takes_ = 1 << 30;              // before it is full
  std::size_t takes_datagrams_ = 0;  // of the next batch, and nothing else then
  bool blocked_ = false;
  int random_ = 0;
  std::chrono::nanoseconds now_ = std::chrono::seconds(5);
};

TEST_F(SenderHubTest, WithoutAFlowFramesCarryTheirPayloads) {
  send("a", {kOne, kTwo, kThree});
  EXPECT_EQ(flushed(), "a1+ a2+ a3+ ");
}

TEST_F(SenderHubTest, OnePayloadForSeveralGoesOnce) {
  begin();
  send("a", {kOne, kTwo, kThree});
  send("b", {kTwo, kThree}, 1440);
  send("c", {kTwo, kThree}, 8192);
  // b is too small.
  EXPECT_EQ(flushed(), "*********a1@ a2@ b2+ c2@ a3@ b3+ c3@ ");
}

TEST_F(SenderHubTest, PayloadsOfOneSizeAreCutFromOneBuffer) {
  begin();
  const int before = buffers_;
  for (int i = 0; i < 5; ++i) send("a", {kOne, kTwo}, 8192);
  (void)flushed();
  EXPECT_EQ(buffers_ - before, 1);
  for (int i = 0; i < 20; ++i) send("b", {kOne, kTwo}, 8192);
  (void)flushed();
  EXPECT_EQ(buffers_ - before, 5);  // 7, 7 and 2, which is one turn; and 4
  send("c", {kOne, kTwo}, 8192);
  send("d", {kOne, kTwo}, 5000);
  (void)flushed();
  EXPECT_EQ(buffers_ - before, 7);
}

TEST_F(SenderHubTest, FramesGetOnWhileTheSocketIsFilledAgainAndAgain) {
  begin();
  for (int i = 0; i < 30; ++i) send("a", {kOne, kTwo}, 65'536);
  blocked_ = true;
  (void)flushed();
  takes_ = 3;  // buffers at a time
  for (int i = 0; i < 4; ++i) {
    blocked_ = false;
    takes_ += 3;
    hub_.writable(kGroup, now_);
  }
  EXPECT_NE(words_.find("a1@"), std::string::npos);
}

TEST_F(SenderHubTest, TwoFramesToOneNodeShareAPayload) {
  begin();
  const Payload payload = Payload::zeroed(1440 * 3);
  for (const PeerNumber peer : {kOne, kTwo}) {
    hub_.send(peer, kFlow, "a", {payload, 0, payload.size()});
    hub_.send(peer, kFlow, "b", {payload, 0, payload.size()});
  }
  EXPECT_EQ(flushed(), "***a1@ b1@ a2@ b2@ ");
}

TEST_F(SenderHubTest, EqualBytesAreNotTheSamePayload) {
  begin();
  for (const PeerNumber peer : {kOne, kTwo}) send("a", {peer});
  EXPECT_EQ(flushed(), "a1+ a2+ ");
}

TEST_F(SenderHubTest, OrderIsThatOfSending) {
  begin();
  hub_.send(kOne, "q", {});
  send("a", {kOne, kTwo});
  hub_.send(kOne, "r", {});
  send("v", {kOne, kTwo}, 0);
  EXPECT_EQ(flushed(), "***q1 a1@ r1 v1 a2@ v2 ");
}

TEST_F(SenderHubTest, WhenTheSocketIsFullFramesDoNotOvertake) {
  begin();
  blocked_ = true;
  send("a", {kOne, kTwo});
  EXPECT_EQ(flushed(), "");
  send("b", {kOne, kTwo});
  EXPECT_EQ(flushed(), "");
  blocked_ = false;
  hub_.writable(kGroup, now_);
  EXPECT_EQ(std::exchange(words_, {}), "***a1@ a2@ ***b1@ b2@ ");
}

TEST_F(SenderHubTest, WhoIsGoneGetsNothingAndTheOthersDo) {
  begin();
  send("a", {kOne, kTwo, kThree});
  hub_.disconnected(kTwo);
  EXPECT_EQ(flushed(), "***a1@ a3@ ");
  send("b", {kOne, kTwo, kThree});
  EXPECT_EQ(flushed(), "***b1@ b3@ ");
  told_.clear();
  hub_.connected(kTwo);
  EXPECT_EQ(told_, "open2 ");
  send("c", {kOne, kTwo, kThree});
  EXPECT_EQ(flushed(), "***c1@ c2+ c3@ ");
}

TEST_F(SenderHubTest, AStreamIsClosedWhenItsFlowHasEndedAndAllHaveAllOfIt) {
  begin();
  send("a", {kOne, kTwo, kThree});
  hub_.end_flow(kFlow);
  EXPECT_EQ(flushed(), "***a1@ a2@ a3@ ");
  told_.clear();
  hub_.tick(now_);
  EXPECT_EQ(told_, "");
  report_all();
  hub_.tick(now_);
  EXPECT_EQ(told_, "close1 close2 close3 ");
  EXPECT_EQ(hub_.streams(), 0u);
  report_all();  // these come too late, and hurt nobody
}

TEST_F(SenderHubTest, FlowsToTheSameNodesShareAStream) {
  begin();
  hub_.begin_flow({8}, kGroup, {kThree, kTwo, kOne});
  EXPECT_EQ(hub_.streams(), 1u);
  hub_.begin_flow({9}, kGroup, {kTwo, kOne});
  EXPECT_EQ(hub_.streams(), 2u);
  hub_.begin_flow({10}, kGroup, {kTwo});  // nobody to share with
  EXPECT_EQ(hub_.streams(), 2u);
}

TEST_F(SenderHubTest, ANodeTakesPartInABoundedNumberOfStreams) {
  for (std::uint16_t i = 0; i < kStreamsMax; ++i) {
    const Group group{"239.1.1.2", static_cast<std::uint16_t>(1000 + i)};
    ASSERT_TRUE(hub_.begin_flow({10u + i}, group, {kOne, kTwo}).has_value());
  }
  const auto begun = hub_.begin_flow({9}, {"239.1.1.2", 999}, {kTwo, kThree});
  ASSERT_FALSE(begun.has_value());
  EXPECT_EQ(begun.error().code, ErrorCode::kLimit);
  EXPECT_TRUE(hub_.begin_flow({9}, {"239.1.1.2", 1000}, {kOne, kTwo}).has_value());  // shares one
  EXPECT_EQ(hub_.streams(), kStreamsMax);
}

TEST_F(SenderHubTest, StreamsThatShareASocketTakeTurns) {
  begin();
  constexpr FlowNumber kOther{8};
  std::map<PeerNumber, StreamId> first = streams_;
  ASSERT_TRUE(hub_.begin_flow(kOther, kGroup, {kOne, kTwo}).has_value());
  for (int i = 0; i < 12; ++i) {
    now_ += milliseconds(50);
    hub_.tick(now_);
    report_all();
    for (const PeerNumber peer : {kOne, kTwo}) std::swap(streams_[peer], first[peer]);
  }
  hub_.flush(now_);
  words_.clear();
  blocked_ = true;
  for (int i = 0; i < 100; ++i) {
    send("a", {kOne, kTwo, kThree}, 65'536);
    const Payload payload = Payload::zeroed(65'536);
    for (const PeerNumber peer : {kOne, kTwo}) hub_.send(peer, kOther, "b", {payload, 0, 65'536});
  }
  (void)flushed();
  multicast_.clear();
  for (int i = 0; i < 20; ++i) {
    blocked_ = false;
    takes_ = 2;
    now_ += milliseconds(50);  // the pace is not the bound
    hub_.writable(kGroup, now_);
  }
  ASSERT_EQ(multicast_.size(), 2u);
  const auto [least, most] = std::minmax(multicast_.begin()->second, multicast_.rbegin()->second);
  EXPECT_GE(least * 2, most) << least << " and " << most;
}

TEST_F(SenderHubTest, ATermThatFollowsGoesOnOnTheStreamBehindTheOneBefore) {
  begin();
  send("a", {kOne, kTwo, kThree});
  EXPECT_EQ(flushed(), "***a1@ a2@ a3@ ");
  const StreamId stream = streams_.at(kOne);
  told_.clear();
  hub_.begin_flow(kFlow, kGroup, {kOne, kTwo, kThree});
  send("b", {kOne, kTwo, kThree});
  EXPECT_EQ(flushed(), "***b1@ b2@ b3@ ");
  EXPECT_EQ(told_, "");
  EXPECT_EQ(streams_.at(kOne), stream);
}

TEST_F(SenderHubTest, SaysHowEachGetsItsPayloads) {
  EXPECT_FALSE(hub_.standing(kFlow, kOne).has_value());
  EXPECT_TRUE(hub_.unused(kOne));
  hub_.begin_flow(kFlow, kGroup, {kOne, kTwo, kThree});
  EXPECT_FALSE(hub_.unused(kOne));
  hub_.tick(now_);
  SenderHub::Standing one = hub_.standing(kFlow, kOne).value();
  EXPECT_TRUE(one.connected && !one.admitted);
  EXPECT_EQ(one.out_since, now_);
  EXPECT_FALSE(one.why.has_value()) << "nobody knows yet";
  EXPECT_FALSE(hub_.standing(kFlow, PeerNumber{4}).has_value());
  const auto since = now_;
  ASSERT_TRUE(hub_.received(kTwo, CannotListen{streams_.at(kTwo), "no such interface"}, now_));
  for (int i = 0; i < 12; ++i) {
    now_ += milliseconds(50);
    hub_.tick(now_);
    const Report report{
        .stream = streams_.at(kOne), .bytes = bytes_, .clock = now_, .probes = probes_};
    ASSERT_TRUE(hub_.received(kOne, report, now_));
  }
  one = hub_.standing(kFlow, kOne).value();
  EXPECT_TRUE(one.admitted && one.alone && !one.out_since);
  const SenderHub::Standing two = hub_.standing(kFlow, kTwo).value();
  EXPECT_FALSE(two.admitted);
  EXPECT_EQ(two.out_since, since);
  EXPECT_EQ(two.why, Dismissal::kCannotListen);
  EXPECT_NE(two.reason.find("no such interface"), std::string::npos);
  const auto again = Membership::Options{}.again_min;
  hub_.tick(now_ += again);
  EXPECT_FALSE(hub_.standing(kFlow, kTwo)->why.has_value()) << "it is asked again";
  ASSERT_TRUE(hub_.received(kTwo, CannotListen{streams_.at(kTwo), "no such interface"}, now_));
  EXPECT_EQ(hub_.standing(kFlow, kTwo)->reason, two.reason);
  EXPECT_EQ(hub_.standing(kFlow, kTwo)->out_since, since);
  hub_.disconnected(kOne);
  hub_.tick(now_);
  EXPECT_FALSE(hub_.standing(kFlow, kOne)->connected);
  EXPECT_FALSE(hub_.standing(kFlow, kOne)->admitted);
  hub_.connected(kOne);
  hub_.tick(now_);
  EXPECT_EQ(hub_.standing(kFlow, kOne)->out_since, now_);
  hub_.end_flow(kFlow);
  EXPECT_FALSE(hub_.standing(kFlow, kOne).has_value());
}

TEST_F(SenderHubTest, CountsWhatWentWhichWay) {
  begin();
  EXPECT_FALSE(hub_.standing(kFlow, kOne)->alone);
  send("a", {kOne, kTwo, kThree}, 8192);
  send("b", {kOne}, 5000);
  send("c", {kOne, kTwo}, 100);
  (void)flushed();
  EXPECT_EQ(hub_.counters().multicast_bytes, 8192u);
  EXPECT_EQ(hub_.counters().carried_bytes, 5000u + 100 + 100);
  const Position start{1 + probes_ * 1440};  // behind the probes
  const Missing missing{streams_.at(kTwo), {{start, 0, 1000}, {start, 2000, 500}}};
  ASSERT_TRUE(hub_.received(kTwo, missing, now_));
  hub_.flush(now_);
  const SenderHub::PeerCounters& two = hub_.counters().peers.at(kTwo);
  EXPECT_EQ(two.repairs, 2u);
  EXPECT_EQ(two.repaired_bytes, 1500u);
  EXPECT_EQ(hub_.repaired_bytes(), 1500u);
  // Nothing more is heard of them.
  for (int i = 0; i < 12; ++i) hub_.tick(now_ += milliseconds(50));
  EXPECT_EQ(two.dismissals[static_cast<std::size_t>(Dismissal::kDeaf)], 1u);
  hub_.disconnected(kOne);
  hub_.tick(now_);
  EXPECT_EQ(hub_.counters().peers.at(kOne).dismissals[static_cast<std::size_t>(Dismissal::kDeaf)],
            1u);
}

TEST_F(SenderHubTest, WhoSpeaksOfAnothersStreamIsRefused) {
  hub_.begin_flow(kFlow, kGroup, {kOne, kTwo});
  const Report report{.stream = streams_.at(kOne)};
  EXPECT_TRUE(hub_.received(kTwo, report, now_).has_value());
  EXPECT_FALSE(hub_.received(kThree, report, now_).has_value());
}

TEST_F(SenderHubTest, WhatHasGoneOfABatchIsNotSentAgain) {
  begin();
  send("a", {kOne, kTwo, kThree}, 20'000);
  const std::string whole = flushed();
  EXPECT_EQ(whole, "**************a1@ a2@ a3@ ");
  send("a", {kOne, kTwo, kThree}, 20'000);
  takes_datagrams_ = 5;
  EXPECT_EQ(flushed(), "*****");
  takes_datagrams_ = 3;
  hub_.writable(kGroup, now_);
  EXPECT_EQ(words_, "***");
  words_.clear();
  hub_.writable(kGroup, now_);
  EXPECT_EQ("********" + flushed(), whole);
}

}  // namespace
}  // namespace mariner::trm
