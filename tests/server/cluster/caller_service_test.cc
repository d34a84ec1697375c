#include "server/cluster/caller_service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "tests/server/cluster/service_rig.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using replication::CoordinatorHost;
using replication::CoordinatorRole;
using replication::NodeId;

constexpr NodeId kOne{1};
constexpr NodeId kTwo{2};
constexpr NodeId kThree{3};

// A volume whose coordinator and master are on node 1, the mirror on node 2, the logger on node 3.
class CallerServiceTest : public ::testing::Test {
 protected:
  explicit CallerServiceTest(const std::string& interface = "") : rig_(3, interface) {
    rig_.node(1).server.add(kVolume, {.storage = &master_});
    rig_.node(2).server.add(kVolume, {.storage = &mirror_});
    rig_.node(3).server.add(kVolume, {.logger = &logger_, .history = &asked_});
    master_.granted(1u << 30);
    mirror_.granted(1u << 30);
  }
  ~CallerServiceTest() override { coordinator_.reset(); }

  // A coordinator on `node`, of the next epoch.
  void coordinate(std::uint32_t node, replication::StorageHost& own) {
    coordinator_.reset();
    link_ = std::make_unique<CoordinatorLink>(
        rig_.node(node).caller, kVolume,
        CoordinatorLink::Participants{
            .logger = kThree, .storages = {kOne, kTwo}, .group = group_, .own = {.storage = &own}});
    coordinator_ = std::make_unique<CoordinatorHost>(
        CoordinatorRole::Start{kVolume, {++epoch_}, {kOne, kTwo}, NodeId{node}, kThree},
        CoordinatorRole::Options{}, rig_.loop.executor(), *link_, CoordinatorHost::Events{});
    link_->begin(*coordinator_);
    ASSERT_TRUE(rig_.run_until([&] {
      return coordinator_->ready() && coordinator_->role().caught_up(kOne) &&
             coordinator_->role().caught_up(kTwo);
    }));
  }
  void submit(int count) {
    for (int i = 0; i < count; ++i) {
      replication::WriteRequest request;
      request.extent = {{0}, {1}};
      request.payload = test::LoggedRig::blocks_of('w', 1);
      ++submitted_;
      coordinator_->submit(std::move(request), [this](const Result<replication::Stamp>& stamp) {
        if (stamp) acknowledged_.insert(stamp->sequence);
      });
    }
  }
  bool all_acknowledged() {
    return rig_.run_until([&] { return acknowledged_.size() == submitted_; });
  }
  bool all_committed() {
    return rig_.run_until([&] {
      return master_storage_.committed == acknowledged_ &&
             mirror_storage_.committed == acknowledged_;
    });
  }

  ServiceRig rig_;
  std::optional<trm::Group> group_;
  Executor& executor_ = rig_.loop.executor();
  MemoryLog log_{executor_};
  MemoryStorage master_storage_{executor_, log_};
  MemoryStorage mirror_storage_{executor_, log_};
  replication::LoggerHost logger_{{kVolume, {}, {}, {}, {}, {}}, executor_, log_, log_};
  replication::StorageHost master_{{kVolume, {}, {}}, executor_, master_storage_, master_storage_};
  replication::StorageHost mirror_{{kVolume, {}, {}}, executor_, mirror_storage_, mirror_storage_};
  test::AskedHistory asked_;
  std::uint64_t epoch_ = 0;
  std::unique_ptr<CoordinatorLink> link_;
  std::unique_ptr<CoordinatorHost> coordinator_;
  std::size_t submitted_ = 0;
  std::set<SequenceNumber> acknowledged_;
};

TEST_F(CallerServiceTest, AWriteReachesAllThreeNodes) {
  coordinate(1, master_);
  submit(300);
  ASSERT_TRUE(all_acknowledged());
  EXPECT_EQ(log_.writes, acknowledged_);
  ASSERT_TRUE(all_committed());
  for (const auto& node : rig_.nodes) EXPECT_TRUE(node->reports.empty());
}

TEST_F(CallerServiceTest, BrokenConnectionsLoseNothing) {
  coordinate(1, master_);
  for (int round = 0; round < 6; ++round) {
    submit(100);
    rig_.loop.run_for(1ms);
    rig_.node(1).bus->redial(round % 2 == 0 ? kThree : kTwo);
    submit(100);
    ASSERT_TRUE(all_acknowledged()) << "round " << round;
  }
  ASSERT_TRUE(all_committed());
  EXPECT_EQ(log_.writes, acknowledged_);
  EXPECT_EQ(mirror_storage_.caught_up, 3);
}

TEST_F(CallerServiceTest, AnotherNodeTakesOver) {
  coordinate(1, master_);
  submit(100);
  ASSERT_TRUE(all_acknowledged());
  const auto first_link = std::move(link_);
  const auto first = std::move(coordinator_);
  coordinate(2, mirror_);
  submit(100);
  ASSERT_TRUE(all_acknowledged());
  ASSERT_TRUE(all_committed());
  EXPECT_GT(*acknowledged_.rbegin(), SequenceNumber{4096}) << "numbers that may have been used";
}

TEST_F(CallerServiceTest, WhyAConversationIsBegunAnewIsSaid) {
  coordinate(1, master_);
  link_->reopen_log(kThree, {ErrorCode::kCorrupt, "ends before what was acknowledged"});
  ASSERT_EQ(rig_.node(1).reports.size(), 1u);
  EXPECT_EQ(rig_.node(1).reports[0].code, ErrorCode::kCorrupt);
  const std::string& said = rig_.node(1).reports[0].message;
  for (const auto* const part : {"volume 7", "node 3", "log", "before what was acknowledged"}) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }
  link_->reopen_storage(kTwo, {ErrorCode::kStaleEpoch, "somebody else coordinates"});
  EXPECT_EQ(rig_.node(1).reports.size(), 1u);
  submit(10);
  ASSERT_TRUE(all_acknowledged());
  ASSERT_TRUE(all_committed());
}

TEST_F(CallerServiceTest, WithoutAnInterfaceWritesGoByTheConnectionsWhichIsSaidOnce) {
  group_ = trm::Group{"239.192.44.10", 6003};
  coordinate(1, master_);
  submit(100);
  ASSERT_TRUE(all_acknowledged());
  ASSERT_TRUE(all_committed());
  ASSERT_EQ(rig_.node(1).reports.size(), 1u);
  EXPECT_NE(rig_.node(1).reports[0].message.find("239.192.44.10"), std::string::npos);
  EXPECT_FALSE(rig_.node(1).bus->standing(kVolume, kTwo).has_value());
}

// The same with multicast, on the loopback interface.
class MulticastCallerTest : public CallerServiceTest {
 protected:
  MulticastCallerTest() : CallerServiceTest("127.0.0.1") {
    group_ = trm::Group{"239.192.44.10", static_cast<std::uint16_t>(20'000 + getpid() % 20'000)};
  }
  bool takes_part(std::uint32_t node, std::initializer_list<NodeId> receivers) {
    return rig_.run_until([&] {
      return std::ranges::all_of(receivers, [&](NodeId receiver) {
        const auto standing = rig_.node(node).bus->standing(kVolume, receiver);
        return standing && standing->admitted;
      });
    });
  }
  [[nodiscard]] std::uint64_t multicast_bytes(std::uint32_t node) const {
    return std::as_const(*rig_.nodes[node - 1]->bus)
        .multicast()
        ->sender()
        .counters()
        .multicast_bytes;
  }
};

TEST_F(MulticastCallerTest, WritesGoOnceToWhoIsOnOtherNodes) {
  coordinate(1, master_);
  ASSERT_TRUE(takes_part(1, {kTwo, kThree}));
  EXPECT_FALSE(rig_.node(1).bus->standing(kVolume, kOne).has_value()) << "itself";
  submit(300);
  ASSERT_TRUE(all_acknowledged());
  EXPECT_EQ(log_.writes, acknowledged_);
  ASSERT_TRUE(all_committed());
  EXPECT_EQ(multicast_bytes(1), 300u * 4096);
  for (const auto& node : rig_.nodes) EXPECT_TRUE(node->reports.empty());
}

TEST_F(MulticastCallerTest, AnotherCoordinatorHasAFlowOfItsOwnAndTheFirstOneNone) {
  coordinate(1, master_);
  ASSERT_TRUE(takes_part(1, {kTwo, kThree}));
  submit(100);
  ASSERT_TRUE(all_acknowledged());
  coordinator_.reset();
  link_.reset();
  EXPECT_FALSE(rig_.node(1).bus->standing(kVolume, kTwo).has_value());
  coordinate(2, mirror_);
  ASSERT_TRUE(takes_part(2, {kOne, kThree}));
  const std::uint64_t before = multicast_bytes(1);
  submit(100);
  ASSERT_TRUE(all_acknowledged());
  ASSERT_TRUE(all_committed());
  EXPECT_GE(multicast_bytes(2), 100u * 4096);
  EXPECT_EQ(multicast_bytes(1), before);
}

TEST_F(MulticastCallerTest, ATermThatFollowsOnTheSameNodeGoesOn) {
  for (int term = 0; term < 3; ++term) {
    coordinate(1, master_);
    ASSERT_TRUE(takes_part(1, {kTwo, kThree}));
    submit(100);
    ASSERT_TRUE(all_acknowledged());
    ASSERT_TRUE(all_committed());
    EXPECT_GT(multicast_bytes(1), 0u);
  }
}

TEST_F(MulticastCallerTest, BrokenConnectionsLoseNothingEither) {
  coordinate(1, master_);
  ASSERT_TRUE(takes_part(1, {kTwo, kThree}));
  for (int round = 0; round < 6; ++round) {
    submit(100);
    rig_.loop.run_for(1ms);
    rig_.node(1).bus->redial(round % 2 == 0 ? kThree : kTwo);
    submit(100);
    ASSERT_TRUE(all_acknowledged()) << "round " << round;
  }
  ASSERT_TRUE(all_committed());
  EXPECT_EQ(log_.writes, acknowledged_);
}

TEST_F(CallerServiceTest, TheHistoryIsAskedWhereTheLoggerIs) {
  RemoteHistory& history = rig_.node(2).caller.history(kVolume, kThree);
  ASSERT_TRUE(rig_.run_until([&] { return rig_.node(2).bus->is_up(kThree); }));
  std::optional<Result<volume::History::Hold>> hold;
  history.hold({5}, [&](Result<volume::History::Hold> result) { hold = std::move(result); });
  ASSERT_TRUE(rig_.run_until([&] { return !asked_.holds.empty(); }));
  test::AskedHistory::next(asked_.holds).done(Error{ErrorCode::kOutsideWindow, "gone"});
  ASSERT_TRUE(rig_.run_until([&] { return hold.has_value(); }));
  EXPECT_EQ(hold->error().code, ErrorCode::kOutsideWindow);
  hold.reset();
  history.hold({6}, [&](Result<volume::History::Hold> result) { hold = std::move(result); });
  rig_.node(2).bus->redial(kThree);
  ASSERT_TRUE(rig_.run_until([&] { return hold.has_value(); }));
  EXPECT_EQ(hold->error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace mariner::cluster
