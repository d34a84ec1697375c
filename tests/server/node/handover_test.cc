#include "server/node/handover.h"

#include <gtest/gtest.h>

#include "proto/cluster.pb.h"
#include "server/manager/alive_node.h"
#include "server/manager/serving_sign.h"
#include "tests/server/manager/memory_store.h"

namespace mariner::node {
namespace {

using namespace std::chrono_literals;
using manager::VolumeRecord;
using replication::NodeId;

constexpr VolumeId kVolume{1};
constexpr NodeId kSelf{1};
constexpr NodeId kOther{2};

class HandoverTest : public ::testing::Test {
 protected:
  HandoverTest() { alive(true); }
  void put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(cluster_.commit({.puts = {{key, value}}}));
  }
  void alive(bool target) {
    put(manager::alive_key(kOther), manager::encode(manager::AliveNode{"b", target, {}}));
    executor_.advance(10ms);
  }
  // The other one has taken over, and serves.
  void serves() {
    put(manager::volume_key(kVolume),
        encode(VolumeRecord{kVolume, {5}, kOther, {3}, {kSelf, kOther}}));
    cluster::Serving sign;
    sign.set_node(kOther.value);
    sign.set_epoch(5);
    put(manager::serving_key(kVolume), sign.SerializeAsString());
    executor_.advance(10ms);
  }
  void begin(std::vector<NodeId> successors = {kOther}, bool redirect = false) {
    std::vector<Handover::Volume> volumes;
    volumes.push_back({kVolume, "iqn.db1", std::move(successors), redirect});
    handover_.begin(std::move(volumes), [this] { done_ = executor_.monotonic_time(); });
  }
  // How long it has taken; -1: it goes on.
  std::int64_t ms_taken(std::chrono::milliseconds within = 10s) {
    const auto begun = executor_.monotonic_time();
    executor_.advance(within);
    return done_ ? (*done_ - begun) / 1ms : -1;
  }

  test::ManualExecutor executor_;
  manager::MemoryCluster cluster_{executor_};
  manager::MemoryStore store_{executor_, cluster_, {}};
  manager::ClusterView view_{store_, executor_, std::string(manager::kClusterPrefix), {}, [] {}};
  std::size_t sessions_ = 1;
  std::optional<std::chrono::nanoseconds> done_;
  Handover handover_{{executor_, view_, kSelf, [this](const std::string& iqn) {
                        EXPECT_EQ(iqn, "iqn.db1");
                        return sessions_;
                      }}};
};

TEST_F(HandoverTest, HostsHaveTimeToSeeWhoServes) {
  begin();
  EXPECT_EQ(ms_taken(200ms), -1);
  serves();
  EXPECT_NEAR(static_cast<double>(ms_taken()), 1000, 30);
}

TEST_F(HandoverTest, NobodyIsWaitedForForLong) {
  begin();
  EXPECT_NEAR(static_cast<double>(ms_taken()), 1000, 30);
}

TEST_F(HandoverTest, WhoServesAlreadyIsNotWaitedFor) {
  serves();
  begin();
  EXPECT_NEAR(static_cast<double>(ms_taken()), 1000, 30) << "but hosts have their time";
}

TEST_F(HandoverTest, WithoutHostsNothingIsWaitedFor) {
  sessions_ = 0;
  begin();
  EXPECT_EQ(ms_taken(), 0);
}

TEST_F(HandoverTest, WhenTheLastHostHasGoneNothingIsWaitedFor) {
  begin();
  serves();
  EXPECT_EQ(ms_taken(100ms), -1);
  sessions_ = 0;
  EXPECT_LE(ms_taken(), 10);
}

TEST_F(HandoverTest, WhoIsToComeAgainHasTheTimeTo) {
  begin({kOther}, true);
  serves();
  EXPECT_EQ(ms_taken(100ms), -1);
  sessions_ = 0;
  EXPECT_NEAR(static_cast<double>(ms_taken()), 3900, 50);
}

TEST_F(HandoverTest, WhereNobodyIsLoggedInNobodyComesAgain) {
  sessions_ = 0;
  begin({kOther}, true);
  EXPECT_EQ(ms_taken(), 0);
}

TEST_F(HandoverTest, WhereNobodyMayTakeOverNothingIsWaitedFor) {
  begin({});
  EXPECT_EQ(ms_taken(), 0);
}

TEST_F(HandoverTest, WhoServesNoHostsDoesNotTakeOver) {
  alive(false);
  begin();
  EXPECT_EQ(ms_taken(), 0);
}

TEST_F(HandoverTest, WhoDiesMeanwhileIsNotWaitedFor) {
  begin();
  EXPECT_EQ(ms_taken(100ms), -1);
  ASSERT_TRUE(cluster_.commit({.deletes = {manager::alive_key(kOther)}}));
  EXPECT_LE(ms_taken(), 10);
}

TEST_F(HandoverTest, NothingThatWasCoordinatedNeedsNothing) {
  handover_.begin({}, [this] { done_ = executor_.monotonic_time(); });
  EXPECT_EQ(ms_taken(), 0);
}

}  // namespace
}  // namespace mariner::node
