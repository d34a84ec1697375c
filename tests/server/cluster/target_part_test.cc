#include "server/cluster/target_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/cluster/target_rig.h"
#include "tests/server/peer/peer_rig.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using replication::NodeId;
using State = TargetPart::State;
using States = std::vector<State>;
using Epochs = std::vector<std::uint64_t>;

constexpr VolumeId kVolume = TargetRig::kVolume;
constexpr NodeId kOne = TargetRig::kOne;
constexpr NodeId kTwo{2};

class TargetPartTest : public ::testing::Test {
 protected:
  TargetPart& target() { return *rig_.member.target; }
  // Step by step, until `ended`.
  template <typename Ended>
  void advance_until(Ended ended) {
    for (int i = 0; i < 100'000 && !ended(); ++i) rig_.executor.advance(1ms);
    ASSERT_TRUE(ended());
  }

  TargetRig rig_;
};

TEST_F(TargetPartTest, ServesOnceItIsElected) {
  rig_.begin();
  EXPECT_EQ(target().state(), State::kTransitioning);
  EXPECT_EQ(target().coordinator(), nullptr);
  rig_.write_block(0, 'a');
  EXPECT_EQ(rig_.answers, "A");
  EXPECT_EQ(*rig_.begin_read({{0}, {1}}), "unavailable");
  advance_until([&] { return target().coordinator() != nullptr; });
  EXPECT_EQ(target().state(), State::kTransitioning) << "its participants are not open yet";
  EXPECT_EQ(*rig_.begin_read({{0}, {1}}), "unavailable");
  rig_.executor.advance(1s);
  EXPECT_EQ(target().state(), State::kServing);
  EXPECT_EQ(rig_.member.told(), States{State::kServing});
  EXPECT_EQ(rig_.member.epochs, Epochs{1});
  rig_.write_block(1, 'b');
  EXPECT_EQ(rig_.answers, "A") << "not before it is logged";
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.answers, "Ab");
  EXPECT_EQ(rig_.read({{0}, {3}}), "0b0");
  EXPECT_EQ(rig_.layer->size_bytes(), TargetRig::kBlocks * kBlockBytes);
}

TEST_F(TargetPartTest, WhatWasAnsweredIsReadAlsoFromWithinTheAnswer) {
  rig_.serve();
  std::shared_ptr<std::string> read;
  rig_.write_block(0, 'a');
  rig_.write_block(1, 'b');
  rig_.layer->write({0, kBlockBytes}, test::LoggedRig::blocks_of('c', 1),
                    [&](const Result<void>& r) {
                      EXPECT_TRUE(r);
                      read = rig_.begin_read({{0}, {2}});
                    });
  rig_.executor.run_ready();
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(*read, "cb");
}

TEST_F(TargetPartTest, WritesOfPartsOfOneBlockLoseNothing) {
  rig_.serve();
  for (std::uint64_t sector = 0; sector < 8; ++sector) {
    rig_.write({sector * 512, 512}, static_cast<char>('a' + sector));
  }
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.answers, "abcdefgh");
  std::string sectors;
  rig_.layer->read({0, kBlockBytes}, [&](const Result<PayloadSlice>& r) {
    ASSERT_TRUE(r);
    for (std::size_t at = 0; at < kBlockBytes; at += 512) {
      sectors += static_cast<char>(r->bytes()[at]);
    }
  });
  rig_.executor.run_ready();
  EXPECT_EQ(sectors, "abcdefgh");
}

TEST_F(TargetPartTest, WithoutTheLeaseEverythingIsUnavailableUntilItIsElectedAgain) {
  rig_.serve();
  rig_.write_block(0, 'a');
  rig_.executor.run_ready();
  rig_.member.cut(true);
  rig_.executor.advance(2s);
  EXPECT_EQ(rig_.read({{0}, {1}}), "a") << "the lease goes on for a while";
  rig_.log.disk.hold();
  rig_.write_block(1, 'b');
  advance_until([&] { return !rig_.member.lease.held(); });
  EXPECT_EQ(target().state(), State::kTransitioning);
  EXPECT_EQ(rig_.answers, "aB");
  rig_.write_block(2, 'c');
  EXPECT_EQ(rig_.answers, "aBC");
  EXPECT_EQ(*rig_.begin_read({{0}, {1}}), "unavailable");
  rig_.executor.advance(10s);
  EXPECT_EQ(rig_.member.told(), States{State::kTransitioning});
  rig_.log.disk.release();
  rig_.member.cut(false);
  rig_.executor.advance(10s);
  EXPECT_EQ(rig_.member.told(), States{State::kServing});
  EXPECT_EQ(rig_.member.epochs, (Epochs{1, 2}));
  EXPECT_EQ(rig_.record().epoch, Epoch{2});
  EXPECT_EQ(rig_.read({{0}, {3}}), "ab0") << "what was on its way to the log is in the history";
  rig_.write_block(2, 'd');
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.read({{0}, {3}}), "abd");
}

// Its timers come late: nobody has told the target.
TEST_F(TargetPartTest, ALeaseThatHasEndedCountsAlsoBeforeItIsKnownToBeLost) {
  rig_.member.lease_executor.late = 200ms;
  rig_.serve();
  rig_.log.disk.hold();
  rig_.write_block(0, 'a');
  rig_.executor.run_ready();
  rig_.member.cut(true);
  advance_until([&] { return !rig_.member.lease.held(); });
  ASSERT_NE(target().coordinator(), nullptr);
  ASSERT_TRUE(target().coordinator()->ready());
  EXPECT_EQ(target().state(), State::kTransitioning);
  EXPECT_EQ(*rig_.begin_read({{0}, {1}}), "unavailable");
  rig_.write_block(1, 'b');
  EXPECT_EQ(rig_.answers, "B");
  rig_.log.disk.release();
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.answers, "BA") << "it is durable, but others may decide otherwise";
  ASSERT_NE(target().coordinator(), nullptr) << "still";
}

TEST_F(TargetPartTest, NothingIsServedBeforeItIsPreparedInEachTerm) {
  std::vector<UniqueFunction<void()>> asked;
  rig_.member.prepare = [&](UniqueFunction<void()> done) { asked.push_back(std::move(done)); };
  rig_.begin();
  rig_.executor.advance(1s);
  ASSERT_EQ(asked.size(), 1u);
  ASSERT_TRUE(target().coordinator()->ready());
  EXPECT_EQ(target().state(), State::kTransitioning);
  EXPECT_EQ(*rig_.begin_read({{0}, {1}}), "unavailable");
  rig_.member.lease.stop([] {});
  rig_.member.lease.start();
  rig_.executor.advance(5s);
  ASSERT_EQ(rig_.member.epochs, (Epochs{1, 2}));
  ASSERT_EQ(asked.size(), 2u);
  asked[0]();
  rig_.executor.advance(1s);
  EXPECT_EQ(target().state(), State::kTransitioning) << "that was for a term that is over";
  asked[1]();
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.member.told(), States{State::kServing});
  rig_.write_block(0, 'a');
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.answers, "a");
}

TEST_F(TargetPartTest, WhatIsPreparedAfterTheEndIsOfNoUse) {
  UniqueFunction<void()> asked;
  rig_.member.prepare = [&](UniqueFunction<void()> done) { asked = std::move(done); };
  rig_.begin();
  rig_.executor.advance(1s);
  target().close();
  rig_.executor.advance(1s);
  rig_.member.target.reset();
  asked();
  rig_.executor.advance(1s);
  EXPECT_EQ(*rig_.begin_read({{0}, {1}}), "unavailable");
}

TEST_F(TargetPartTest, HoweverOftenItLooksItAsksAtOneRateWhetherItServes) {
  rig_.begin();
  target().close();
  rig_.executor.advance(1s);
  WatchedExecutor counting(rig_.executor);
  rig_.begin_target({.logger = &rig_.logger->host(), .storage = &rig_.storage->host()}, &counting);
  rig_.promises.hold();  // so that its participants do not open
  advance_until([&] { return target().coordinator() != nullptr; });
  for (int i = 0; i < 100; ++i) {
    target().look();
    rig_.executor.advance(70us);
  }
  counting.timers = 0;
  rig_.executor.advance(1s);
  EXPECT_EQ(target().state(), State::kTransitioning);
  EXPECT_LE(counting.timers, 300);
  rig_.promises.release();
  rig_.executor.advance(1s);
  EXPECT_EQ(target().state(), State::kServing);
  target().close();
  rig_.executor.advance(1s);
  rig_.member.target.reset();
}

// Another conversation takes the place of the coordinator's, which begins a new one.
TEST_F(TargetPartTest, AReadWhileTheOwnStorageIsAwayIsUnavailable) {
  rig_.serve();
  rig_.log.disk.hold();
  rig_.write_block(0, 'a');
  rig_.write({512, 512}, 'b');  // waits for that one, then reads the block
  rig_.executor.run_ready();
  const auto other = rig_.storage->host().accept([](const replication::FromStorage&) {});
  rig_.storage->host().received(other, replication::OpenStorage{kVolume, Epoch{1}});
  rig_.executor.run_ready();
  EXPECT_EQ(*rig_.begin_read({{1}, {1}}), "unavailable");
  rig_.log.disk.release();
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.answers, "aB") << "the logger has it; what is below the other cannot be read";
  rig_.executor.advance(1s);
  EXPECT_EQ(target().state(), State::kServing);
  EXPECT_EQ(rig_.member.epochs, Epochs{1});
  EXPECT_EQ(rig_.read({{0}, {1}}), "a");
}

TEST_F(TargetPartTest, WhoIsSupersededTakesAnEpochAboveThat) {
  rig_.serve();
  rig_.log.disk.hold();
  rig_.write_block(0, 'a');
  rig_.executor.run_ready();
  const auto other = rig_.logger->host().accept([](const replication::FromLogger&) {});
  rig_.logger->host().received(other, replication::OpenLog{kVolume, Epoch{4}});
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.answers, "A");
  EXPECT_EQ(*rig_.begin_read({{0}, {1}}), "unavailable");
  rig_.log.disk.release();
  rig_.executor.advance(30s);
  EXPECT_EQ(rig_.member.epochs, (Epochs{1, 2, 3, 4}));
  EXPECT_EQ(target().state(), State::kServing);
  EXPECT_EQ(rig_.read({{0}, {1}}), "a");
}

TEST_F(TargetPartTest, StatesAreToldInOrder) {
  TargetMember standby(rig_.executor, rig_.cluster, kTwo);
  rig_.begin();
  CallerService caller(rig_.executor, kTwo);
  standby.begin({.volume = kVolume, .size_bytes = 4096, .promote = false},
                {rig_.executor,
                 standby.store,
                 standby.lease,
                 standby.view,
                 caller,
                 &rig_.storage->storage(),
                 rig_.logger->logged().history(),
                 {}});
  EXPECT_EQ(standby.target->state(), State::kTransitioning);
  rig_.executor.advance(1s);
  EXPECT_EQ(standby.target->state(), State::kStandby);
  rig_.member.cut(true);
  rig_.executor.advance(10s);
  EXPECT_EQ(standby.target->state(), State::kTransitioning) << "the key of the other one is gone";
  rig_.member.cut(false);
  rig_.executor.advance(10s);
  EXPECT_EQ(standby.told(), (States{State::kStandby, State::kTransitioning, State::kStandby}));
  EXPECT_EQ(rig_.member.told(), (States{State::kServing, State::kTransitioning, State::kServing}));
  EXPECT_TRUE(standby.epochs.empty());
  standby.target->layer()->flush(
      [](const Result<void>& r) { EXPECT_EQ(r.error().code, ErrorCode::kUnavailable); });
  EXPECT_TRUE(standby.target->idle());
}

TEST_F(TargetPartTest, OthersLearnThatItServes) {
  const auto server = [&] { return manager::server_of(rig_.member.view, kVolume); };
  rig_.promises.hold();
  rig_.begin();
  advance_until([&] { return target().coordinator() != nullptr; });
  rig_.executor.advance(1s);
  EXPECT_EQ(server(), std::nullopt) << "it coordinates only";
  rig_.promises.release();
  rig_.executor.advance(1s);
  EXPECT_EQ(server(), kOne);
  rig_.member.lease.stop([] {});
  rig_.executor.advance(1s);
  EXPECT_EQ(server(), std::nullopt);
  rig_.member.lease.start();
  rig_.executor.advance(5s);
  EXPECT_EQ(server(), kOne);
}

TEST_F(TargetPartTest, WhoMayFollowIsKnownWhileItCoordinates) {
  rig_.begin();
  EXPECT_FALSE(target().may_follow(kOne));
  rig_.executor.advance(1s);
  EXPECT_TRUE(target().may_follow(kOne));
  EXPECT_FALSE(target().may_follow(kTwo)) << "it is no storage node";
  target().close();
  EXPECT_FALSE(target().may_follow(kOne));
}

TEST_F(TargetPartTest, AWishOfWhoIsNotKnownToHaveEverythingIsDeclined) {
  TargetMember other(rig_.executor, rig_.cluster, kTwo);
  rig_.serve();
  manager::VolumeRecord record = rig_.record();
  record.storages.push_back(kTwo);
  record.wanted = kTwo;
  rig_.put(record);
  rig_.executor.advance(1s);
  EXPECT_EQ(rig_.record().declined, manager::Declined::kCatchingUp)
      << "nobody knows that it has everything";
  EXPECT_EQ(target().state(), State::kServing);
}

TEST_F(TargetPartTest, WhoIsClosedSendsHostsToWhoServes) {
  rig_.serve();
  rig_.write_block(0, 'a');
  rig_.executor.run_ready();
  target().close();
  rig_.executor.run_ready();
  EXPECT_EQ(rig_.member.told(), States{State::kTransitioning});
  rig_.member.lease.stop([] {});
  TargetMember other(rig_.executor, rig_.cluster, kTwo);
  rig_.put({kVolume, {2}, kTwo, kOne, {kOne, kTwo}});
  rig_.executor.advance(1s);
  EXPECT_EQ(target().state(), State::kTransitioning) << "it does not serve yet";
  manager::ServingSign sign(other.store, other.lease, other.view, kTwo, kVolume);
  sign.look(Epoch{2});
  rig_.executor.advance(1s);
  EXPECT_EQ(rig_.member.told(), States{State::kStandby});
  EXPECT_EQ(*rig_.begin_read({{0}, {1}}), "unavailable");
}

TEST_F(TargetPartTest, TheEndAnswersWhatIsUnderWayAndWaitsForIt) {
  rig_.serve();
  const auto outlives = rig_.layer;
  rig_.log.disk.hold();
  rig_.image.hold();
  rig_.write_block(0, 'a');
  const auto read = rig_.begin_read({{3}, {1}});
  rig_.executor.run_ready();
  EXPECT_EQ(*read, "");
  target().close();
  EXPECT_EQ(rig_.answers, "A");
  EXPECT_EQ(*rig_.begin_read({{3}, {1}}), "unavailable");
  rig_.executor.advance(1s);
  EXPECT_FALSE(target().idle()) << "the image is being read";
  rig_.image.release();
  rig_.executor.advance(1s);
  EXPECT_EQ(*read, "0") << "it was asked while this node served";
  ASSERT_TRUE(target().idle());
  target().look();
  rig_.member.target.reset();
  rig_.executor.advance(10s);
  rig_.write_block(1, 'b');
  EXPECT_EQ(rig_.answers, "AB") << "the layer outlives the part";
  rig_.log.disk.release();
  rig_.executor.advance(1s);
}

// Before anything has come of what it has begun.
TEST_F(TargetPartTest, MayEndAtAnyTime) {
  rig_.begin();
  for (int i = 0; i < 300; ++i) {
    rig_.executor.advance(std::chrono::milliseconds(i));
    target().close();
    for (int k = 0; k < 3 && !target().idle(); ++k) rig_.executor.advance(5ms);
    ASSERT_TRUE(target().idle()) << i;
    rig_.member.target.reset();
    rig_.begin_target({.logger = &rig_.logger->host(), .storage = &rig_.storage->host()});
  }
  rig_.executor.advance(10s);
  EXPECT_EQ(target().state(), State::kServing);
}

// A configuration that knows no other node.
class LonelyTargetTest : public TargetPartTest {
 protected:
  LonelyTargetTest() { rig_.caller.attach(bus_); }

  peer::test::Loop loop_;
  const peer::test::TestCluster cluster_{"north"};
  ParticipantService server_;
  PeerBus bus_{
      loop_.environment(cluster_.tls("n1")), {}, rig_.caller, server_, [](const Error&) {}};
};

TEST_F(LonelyTargetTest, ARecordThatNamesAnUnknownNodeIsSaidAndNotFollowed) {
  rig_.put({kVolume, {}, {}, NodeId{9}, {kOne}});
  rig_.begin();
  rig_.executor.advance(5s);
  ASSERT_EQ(rig_.member.failures.size(), 1u);
  EXPECT_NE(rig_.member.failures[0].find("node 9"), std::string::npos);
  EXPECT_EQ(target().state(), State::kTransitioning);
  EXPECT_EQ(*rig_.begin_read({{0}, {1}}), "unavailable");
  rig_.put({kVolume, {1}, kOne, kOne, {kOne, NodeId{8}}});
  rig_.executor.advance(5s);
  EXPECT_EQ(rig_.member.failures.size(), 1u) << "it is no news: the epoch is the same";
  rig_.put({kVolume, {2}, kOne, kOne, {kOne, NodeId{8}}});
  rig_.executor.advance(5s);
  ASSERT_EQ(rig_.member.failures.size(), 2u);
  EXPECT_NE(rig_.member.failures[1].find("node 8"), std::string::npos);
  rig_.put({kVolume, {4}, kOne, kOne, {kOne}});
  rig_.executor.advance(5s);
  EXPECT_EQ(target().state(), State::kServing);
  EXPECT_EQ(rig_.member.epochs, (Epochs{1, 3, 5}));
}

TEST_F(TargetPartTest, ARecordThatNamesThisNodeForWhatItIsNotIsSaidAndNotFollowed) {
  rig_.begin();
  target().close();
  rig_.begin_target({.logger = nullptr, .storage = &rig_.storage->host()});
  rig_.executor.advance(5s);
  EXPECT_THAT(rig_.member.failures, ::testing::ElementsAre(::testing::HasSubstr("logger")));
  EXPECT_EQ(target().state(), State::kTransitioning);
  target().close();
  rig_.member.failures.clear();
  rig_.begin_target({.logger = &rig_.logger->host(), .storage = nullptr});
  rig_.executor.advance(5s);
  EXPECT_THAT(rig_.member.failures, ::testing::ElementsAre(::testing::HasSubstr("storage")));
  EXPECT_EQ(target().state(), State::kTransitioning);
}

TEST_F(TargetPartTest, WhoCannotCoordinateWhatTheRecordSaysLetsGoOfItWhenItIsToldTo) {
  TargetMember other(rig_.executor, rig_.cluster, kTwo);
  rig_.begin();
  target().close();
  rig_.begin_target({.logger = nullptr, .storage = &rig_.storage->host()});
  rig_.executor.advance(2s);
  ASSERT_EQ(rig_.member.failures.size(), 1u);
  ASSERT_EQ(rig_.record().coordinator, kOne);
  EXPECT_TRUE(target().may_follow(kTwo));
  EXPECT_FALSE(target().may_follow(kOne));
  manager::VolumeRecord record = rig_.record();
  record.wanted = kTwo;
  rig_.put(record);
  rig_.executor.advance(1s);
  EXPECT_EQ(rig_.record().coordinator, NodeId{});
  EXPECT_EQ(rig_.record().wanted, kTwo);
}

TEST_F(TargetPartTest, ARecordThatCannotBeReadIsSaid) {
  const std::string key = manager::volume_key(kVolume);
  ASSERT_TRUE(rig_.cluster.commit({.puts = {{key, "\xff\xff"}}}));
  rig_.begin();
  rig_.executor.advance(5s);
  ASSERT_EQ(rig_.member.failures.size(), 1u);
  EXPECT_NE(rig_.member.failures[0].find(key), std::string::npos);
  EXPECT_EQ(target().state(), State::kTransitioning);
}

}  // namespace
}  // namespace mariner::cluster
