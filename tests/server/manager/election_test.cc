#include "server/manager/election.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/manager/candidate.h"
#include "tests/server/manager/memory_store.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;
using replication::NodeId;

constexpr VolumeId kVolume{1};

// One node of a cluster in memory.
struct MemoryCandidate {
  MemoryCandidate(test::ManualExecutor& executor, MemoryCluster& cluster, NodeId id, bool promote)
      : store(executor, cluster, {}), candidate(store, executor, kVolume, id, promote) {}
  void cut(bool yes) {
    auto faults = store.faults();
    faults.partitioned = yes;
    store.set_faults(faults);
  }
  void lose_answers(unsigned count) {
    auto faults = store.faults();
    faults.lose_answers = count;
    store.set_faults(faults);
  }
  Candidate* operator->() { return &candidate; }

  MemoryStore store;
  Candidate candidate;
};

class ElectionTest : public ::testing::Test {
 protected:
  ElectionTest() { put(encode(VolumeRecord{kVolume, {4}, {}, {3}, {{1}, {2}}})); }
  void put(const std::string& value) {
    EXPECT_TRUE(cluster_.commit({.puts = {{volume_key(kVolume), value}}}).has_value());
  }
  [[nodiscard]] VolumeRecord record() const {
    return *decode_volume_record(kVolume, cluster_.get(volume_key(kVolume)).entry->value);
  }
  void begin(std::optional<MemoryCandidate>& candidate, std::uint32_t id, bool promote = true) {
    candidate.emplace(executor_, cluster_, NodeId{id}, promote);
  }

  test::ManualExecutor executor_;
  MemoryCluster cluster_{executor_};
  std::optional<MemoryCandidate> one_;
  std::optional<MemoryCandidate> two_;
};

TEST_F(ElectionTest, OneOfTwoTakesWhatNobodyHas) {
  begin(one_, 1);
  begin(two_, 2);
  executor_.advance(5s);
  EXPECT_EQ((*one_)->elected + (*two_)->elected, 1);
  EXPECT_NE((*one_)->election.coordinates(), (*two_)->election.coordinates());
  EXPECT_EQ(record().epoch, Epoch{5});
  EXPECT_EQ(record().coordinator, NodeId{(*one_)->election.coordinates() ? 1u : 2u});
}

TEST_F(ElectionTest, WhoLosesItsLeaseStopsBeforeTheOtherBegins) {
  begin(one_, 1);
  executor_.advance(1s);
  ASSERT_TRUE((*one_)->election.coordinates());
  begin(two_, 2);
  executor_.advance(10s);
  ASSERT_FALSE((*two_)->election.coordinates());
  one_->cut(true);
  while (!(*two_)->election.coordinates()) {
    executor_.advance(1ms);
    ASSERT_FALSE((*one_)->lease.held() && (*two_)->election.coordinates());
  }
  EXPECT_EQ((*one_)->deposed, 1);
  EXPECT_EQ((*two_)->epoch, 6u);
  one_->cut(false);
  executor_.advance(10s);
  EXPECT_FALSE((*one_)->election.coordinates());
  EXPECT_EQ((*one_)->elected, 1);
  EXPECT_EQ(record().coordinator, NodeId{2});
}

TEST_F(ElectionTest, WhoBeginsAnewTakesTheNextEpoch) {
  begin(one_, 1);
  executor_.advance(1s);
  EXPECT_EQ((*one_)->epoch, 5u);
  one_.reset();
  begin(one_, 1);
  executor_.advance(1s);
  EXPECT_EQ((*one_)->epoch, 6u) << "also while the lease of its life before goes on";
}

TEST_F(ElectionTest, ALostAnswerCostsAnEpochAndNoMore) {
  begin(one_, 1);
  executor_.advance(4ms);  // the lease is shown
  one_->lose_answers(1);
  executor_.advance(10s);
  EXPECT_TRUE((*one_)->election.coordinates());
  EXPECT_EQ((*one_)->elected, 1);
  EXPECT_EQ(record().epoch.value, (*one_)->epoch);
}

TEST_F(ElectionTest, WithoutPromotionNothingIsTakenFromOthers) {
  begin(one_, 1);
  begin(two_, 2, false);
  executor_.advance(1s);
  one_.reset();
  executor_.advance(20s);
  EXPECT_EQ((*two_)->elected, 0);
}

TEST_F(ElectionTest, WhoWasSupersededAsksTheRecord) {
  begin(one_, 1);
  executor_.advance(1s);
  (*one_)->election.superseded();
  EXPECT_EQ((*one_)->deposed, 1);
  executor_.advance(5s);
  EXPECT_EQ((*one_)->epoch, 6u) << "nobody else has it";
}

TEST_F(ElectionTest, ARecordThatCannotBeUnderstoodIsSaidOnce) {
  put("\xff\xff");
  begin(one_, 1);
  executor_.advance(5s);
  EXPECT_EQ((*one_)->elected, 0);
  EXPECT_NE((*one_)->failed.find("/mariner/volumes/1"), std::string::npos);
  put(encode(VolumeRecord{kVolume, {9}, {}, {3}, {{1}}}));
  executor_.advance(5s);
  EXPECT_EQ((*one_)->epoch, 10u);
}

}  // namespace
}  // namespace mariner::manager
