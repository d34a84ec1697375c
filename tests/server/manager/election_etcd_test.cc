// Leases and elections on three real members of etcd.
#include <gtest/gtest.h>

#include <memory>

#include "server/manager/election.h"
#include "tests/server/manager/candidate.h"
#include "tests/server/manager/store_rig.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;
using replication::NodeId;

class ElectionOnEtcd : public testing::Test {
 protected:
  static constexpr std::size_t kMembers = 3;

  void SetUp() override {
    if (!EtcdCluster::installed()) GTEST_SKIP() << "Debian's etcd-server is not installed";
    static EtcdCluster cluster(kMembers);
    cluster_ = &cluster;
    rig_ = std::make_unique<EtcdRig>(
        EtcdStoreOptions{.endpoints = cluster.endpoints(),
                         .calls = {.timeout = 2s, .attempt_timeout = 500ms},
                         .watch_silence = 1s});
    ASSERT_TRUE(rig_->ready());
    static std::uint32_t volumes = 0;
    volume_ = {++volumes};
    ASSERT_TRUE(
        rig_->put(volume_key(volume_), encode(VolumeRecord{volume_, {}, {}, {3}, {{1}, {2}}})));
    one_ = std::make_unique<Candidate>(rig_->store(), rig_->executor(), volume_, NodeId{1});
    ASSERT_TRUE(wait([&] { return one_->election.coordinates(); }, 10s));
    two_ = std::make_unique<Candidate>(rig_->other(), rig_->executor(), volume_, NodeId{2});
    ASSERT_TRUE(wait([&] { return two_->lease.held() && two_->view.known(); }, 10s));
  }
  void TearDown() override {
    if (cluster_ == nullptr) return;
    if (one_ != nullptr) one_->lease.stop([] {});
    if (two_ != nullptr) two_->lease.stop([] {});
    if (rig_ != nullptr) rig_->pass(200ms);
    one_.reset();
    two_.reset();
  }
  bool wait(const std::function<bool()>& holds, std::chrono::milliseconds limit) {
    return rig_->wait(holds, limit);
  }

  EtcdCluster* cluster_ = nullptr;
  std::unique_ptr<EtcdRig> rig_;
  VolumeId volume_;
  std::unique_ptr<Candidate> one_;
  std::unique_ptr<Candidate> two_;
};

TEST_F(ElectionOnEtcd, ACoordinatorThatDiesIsReplacedWhenItsLeaseEnds) {
  const std::uint64_t epoch = one_->epoch;
  one_.reset();  // nobody renews, and nobody gives it back
  EXPECT_TRUE(wait([&] { return two_->election.coordinates(); }, 10s));
  EXPECT_EQ(two_->epoch, epoch + 1);
}

TEST_F(ElectionOnEtcd, WhoGivesItsLeaseBackIsReplacedAtOnce) {
  one_->lease.stop([] {});
  EXPECT_EQ(one_->deposed, 1);
  EXPECT_TRUE(wait([&] { return two_->election.coordinates(); }, 2s));
}

TEST_F(ElectionOnEtcd, WhoIsWantedTakesOverAtOnceAndBack) {
  const auto wish = [&](std::uint32_t node) {
    VolumeRecord record{volume_, Epoch{std::max(one_->epoch, two_->epoch)}, {}, {3}, {{1}, {2}}};
    record.coordinator = {one_->election.coordinates() ? 1u : 2u};
    record.wanted = {node};
    return rig_->put(volume_key(volume_), encode(record));
  };
  const std::uint64_t epoch = one_->epoch;
  ASSERT_TRUE(wish(2));
  EXPECT_TRUE(wait([&] { return two_->election.coordinates(); }, 2s));
  EXPECT_EQ(one_->deposed, 1);
  EXPECT_EQ(two_->epoch, epoch + 1);
  ASSERT_TRUE(wish(1));
  EXPECT_TRUE(wait([&] { return one_->election.coordinates(); }, 2s));
  EXPECT_EQ(one_->epoch, epoch + 2);
  EXPECT_FALSE(two_->election.coordinates());
}

TEST_F(ElectionOnEtcd, TheStoresLeaderDiesAndNobodyNotices) {
  const std::size_t victim = rig_->leader();
  cluster_->kill(victim);
  rig_->pass(6s);
  EXPECT_EQ(one_->lost + two_->lost, 0);
  EXPECT_TRUE(one_->election.coordinates());
  EXPECT_EQ(two_->elected, 0);
  cluster_->start(victim);
}

TEST_F(ElectionOnEtcd, TheStoreIsAwayForLessThanALease) {
  for (std::size_t i = 0; i < kMembers; ++i) cluster_->freeze(i);
  rig_->pass(1s);
  for (std::size_t i = 0; i < kMembers; ++i) cluster_->go_on(i);
  rig_->pass(4s);
  EXPECT_EQ(one_->lost, 0);
  EXPECT_TRUE(one_->election.coordinates());
}

TEST_F(ElectionOnEtcd, TheStoreIsAwayForLongerAndEverybodyStopsUntilItIsBack) {
  const std::uint64_t epoch = one_->epoch;
  for (std::size_t i = 0; i < kMembers; ++i) cluster_->freeze(i);
  EXPECT_TRUE(wait([&] { return one_->deposed == 1; }, 4s));
  EXPECT_FALSE(one_->lease.held());
  rig_->pass(1s);
  EXPECT_FALSE(two_->election.coordinates());
  for (std::size_t i = 0; i < kMembers; ++i) cluster_->go_on(i);
  EXPECT_TRUE(
      wait([&] { return one_->election.coordinates() != two_->election.coordinates(); }, 15s));
  EXPECT_GT(std::max(one_->epoch, two_->epoch), epoch);
}

}  // namespace
}  // namespace mariner::manager
