#include "server/manager/promotion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/manager/serving_sign.h"
#include "tests/server/manager/candidate.h"
#include "tests/server/manager/memory_store.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;
using replication::NodeId;
using ::testing::HasSubstr;

constexpr VolumeId kVolume{1};

class PromotionTest : public ::testing::Test {
 protected:
  // A node that serves as soon as it coordinates, unless it is told otherwise.
  struct Node {
    Node(test::ManualExecutor& executor, MemoryCluster& cluster, NodeId id)
        : store(executor, cluster, {}),
          candidate(store, executor, kVolume, id, false),
          sign(store, candidate.lease, candidate.view, id, kVolume) {}
    void turn() {
      candidate.look();
      if (serves && candidate.election.coordinates()) sign.look(Epoch{candidate.epoch});
    }
    MemoryStore store;
    Candidate candidate;
    ServingSign sign;
    bool serves = true;
  };

  PromotionTest() {
    put({kVolume, {}, {}, {3}, {{1}, {2}}});
    one_.emplace(executor_, cluster_, NodeId{1});
    pass(1s);
    two_.emplace(executor_, cluster_, NodeId{2});
    pass(1s);
    EXPECT_TRUE(one_->candidate.election.coordinates());
  }
  void put(const VolumeRecord& record) {
    EXPECT_TRUE(cluster_.commit({.puts = {{volume_key(kVolume), encode(record)}}}));
  }
  [[nodiscard]] VolumeRecord record() const {
    return *decode_volume_record(kVolume, cluster_.get(volume_key(kVolume)).entry->value);
  }
  void pass(std::chrono::milliseconds time) {
    for (; time > 0ms; time -= 1ms) {
      executor_.advance(1ms);
      if (one_) one_->turn();
      if (two_) two_->turn();
    }
  }
  // Asked at a third node.
  std::string promote(std::uint32_t node, std::chrono::milliseconds time = 40s) {
    begin(node);
    pass(time);
    return answer_;
  }
  void begin(std::uint32_t node) {
    answer_ = "none";
    promotion_ = std::make_unique<Promotion>(
        store_, executor_, view_,
        Promotion::Options{kVolume, NodeId{node},
                           [](NodeId id) { return "n" + std::to_string(id.value); }, 30s},
        [this](const Result<Promotion::Outcome>& outcome) {
          answer_ = !outcome ? to_string(outcome.error())
                             : std::to_string(outcome->epoch.value) + (outcome->already ? "!" : "");
          promotion_.reset();
        });
    EXPECT_EQ(answer_, "none") << "never from within";
  }

  test::ManualExecutor executor_;
  MemoryCluster cluster_{executor_};
  MemoryStore store_{executor_, cluster_, {}};
  ClusterView view_{store_, executor_, std::string(kClusterPrefix), {}, [] {}};
  std::optional<Node> one_;
  std::optional<Node> two_;
  std::unique_ptr<Promotion> promotion_;
  std::string answer_;
};

TEST_F(PromotionTest, EndsWhenTheNodeServes) {
  two_->serves = false;
  EXPECT_EQ(promote(2, 2s), "none");
  EXPECT_TRUE(two_->candidate.election.coordinates());
  two_->serves = true;
  pass(1s);
  EXPECT_EQ(answer_, "2");
  EXPECT_EQ(promote(1, 1s), "3");
  EXPECT_EQ(promote(2, 1s), "4");
}

TEST_F(PromotionTest, OfWhoCoordinatesAlreadyChangesNothing) {
  const Revision revision = cluster_.revision();
  EXPECT_EQ(promote(1, 20ms), "1!");
  EXPECT_TRUE(cluster_.get(volume_key(kVolume)).entry->revision <= revision);
  EXPECT_EQ(record().epoch, Epoch{1});
}

TEST_F(PromotionTest, OfADeadCoordinatorsVolume) {
  one_.reset();
  pass(20s);
  EXPECT_FALSE(two_->candidate.election.coordinates()) << "nobody takes it by himself";
  EXPECT_EQ(promote(2, 1s), "2");
}

TEST_F(PromotionTest, OfWhoIsNotAliveIsRefused) {
  two_.reset();
  pass(20s);
  EXPECT_THAT(promote(2, 1s), HasSubstr("unavailable: node n2 was not promoted: it is not alive"));
  EXPECT_EQ(record().wanted, NodeId{});
  EXPECT_TRUE(one_->candidate.election.coordinates());
}

TEST_F(PromotionTest, OfWhoIsBehindIsRefused) {
  one_->candidate.others_may_follow = false;
  EXPECT_THAT(promote(2, 1s), HasSubstr("has not caught up"));
  EXPECT_TRUE(one_->candidate.election.coordinates());
  one_->candidate.others_may_follow = true;
  EXPECT_EQ(promote(2, 1s), "2") << "the refusal of before is not of this wish";
}

TEST_F(PromotionTest, OfWhoNeverBeginsFailsAndTheOtherGoesOn) {
  two_->candidate.ready = false;
  EXPECT_THAT(promote(2), HasSubstr("it did not take the volume over, and node n1 goes on"));
  EXPECT_TRUE(one_->candidate.election.coordinates());
}

TEST_F(PromotionTest, OfWhoDiesOnTheWayFails) {
  two_->candidate.ready = false;
  begin(2);
  pass(200ms);
  EXPECT_EQ(record().coordinator, NodeId{});
  two_.reset();
  pass(20s);
  EXPECT_THAT(answer_, HasSubstr("it is not alive"));
  EXPECT_TRUE(one_->candidate.election.coordinates());
}

TEST_F(PromotionTest, WhoDoesNotLetGoIsWaitedForAndTheWishTakenBack) {
  one_->candidate.ready = false;
  EXPECT_THAT(promote(2, 29s), "none");
  EXPECT_EQ(record().wanted, NodeId{2});
  pass(2s);
  EXPECT_THAT(answer_,
              HasSubstr("not within 30 s; node n1, which coordinates the volume, does not"));
  EXPECT_EQ(record().wanted, NodeId{}) << "nothing happens later";
  EXPECT_EQ(record().coordinator, NodeId{1});
}

TEST_F(PromotionTest, WhoServesNothingIsSaid) {
  two_->serves = false;
  EXPECT_THAT(promote(2), HasSubstr("coordinates the volume and does not serve it yet"));
}

TEST_F(PromotionTest, WhileAnotherOneGoesOnIsRefused) {
  one_->candidate.ready = false;
  VolumeRecord wished = record();
  wished.wanted = {1};
  put(wished);
  pass(10ms);
  EXPECT_THAT(promote(2, 1s), HasSubstr("busy: node n1 is being promoted"));
  EXPECT_EQ(record().wanted, NodeId{1});
}

TEST_F(PromotionTest, TheSameWishOfSomebodyElseIsFollowed) {
  one_->candidate.ready = false;
  VolumeRecord wished = record();
  wished.wanted = {2};
  put(wished);
  begin(2);
  pass(100ms);
  one_->candidate.ready = true;
  pass(1s);
  EXPECT_EQ(answer_, "2");
}

TEST_F(PromotionTest, WhoTakesItOnTheWayIsNamed) {
  one_->candidate.ready = false;
  begin(2);
  pass(100ms);
  VolumeRecord taken = record();
  ASSERT_EQ(taken.wanted, NodeId{2});
  taken.wanted = {};
  taken.epoch = Epoch{9};
  put(taken);
  pass(100ms);
  EXPECT_THAT(answer_, HasSubstr("node n1 has taken the volume over meanwhile"));
}

TEST_F(PromotionTest, LostAnswersAndRequestsCostTimeOnly) {
  for (std::uint32_t round = 0; round < 4; ++round) {
    auto faults = store_.faults();
    (round % 2 == 0 ? faults.lose_answers : faults.lose_requests) = 1 + round / 2;
    store_.set_faults(faults);
    const std::uint32_t node = round % 2 == 0 ? 2 : 1;
    EXPECT_EQ(promote(node, 20s), std::to_string(2 + round)) << round;
  }
}

TEST_F(PromotionTest, WithoutTheStoreNothingIsWished) {
  store_.set_faults({.partitioned = true});
  EXPECT_THAT(promote(2), HasSubstr("the cluster's store does not answer"));
  EXPECT_TRUE(one_->candidate.election.coordinates());
  EXPECT_EQ(record().wanted, NodeId{});
}

TEST_F(PromotionTest, OfNoVolume) {
  ASSERT_TRUE(cluster_.commit({.deletes = {volume_key(kVolume)}}));
  pass(10ms);
  EXPECT_THAT(promote(2, 10ms), HasSubstr("not-found"));
}

TEST_F(PromotionTest, MayBeCancelledOrDropped) {
  begin(2);
  promotion_->cancel({ErrorCode::kUnavailable, "the node is stopping"});
  EXPECT_EQ(answer_, "unavailable: the node is stopping");
  begin(2);
  promotion_.reset();
  pass(1s);
  EXPECT_EQ(answer_, "none");
}

}  // namespace
}  // namespace mariner::manager
