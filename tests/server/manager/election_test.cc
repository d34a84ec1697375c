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
  void delay(std::chrono::nanoseconds each_way) {
    auto faults = store.faults();
    faults.delay = each_way;
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

// The lease in which it was elected has ended meanwhile, and another node has taken over.
TEST_F(ElectionTest, AnAnswerThatIsOlderThanTheLeaseElectsNobody) {
  begin(one_, 1);
  executor_.advance(4ms);  // the lease is shown
  one_->delay(500ms);
  executor_.advance(1ms);  // the record is taken, and the answer on its way
  one_->delay(1ms);
  ASSERT_EQ(record().coordinator, NodeId{1});
  begin(two_, 2);
  executor_.advance(50ms);
  (*one_)->lease.stop([] {});
  executor_.advance(100ms);
  (*one_)->lease.start();
  executor_.advance(100ms);
  ASSERT_TRUE((*one_)->lease.held());
  ASSERT_TRUE((*two_)->election.coordinates());
  executor_.advance(10s);
  EXPECT_EQ((*one_)->elected, 0);
  EXPECT_TRUE((*two_)->election.coordinates());
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

// ---- wishes

class WishTest : public ElectionTest {
 protected:
  // One coordinates, Two stands by.
  void begin_both(bool promote = true) {
    begin(one_, 1, promote);
    executor_.advance(1s);
    begin(two_, 2, promote);
    executor_.advance(1s);
    ASSERT_TRUE((*one_)->election.coordinates());
    ASSERT_FALSE((*two_)->election.coordinates());
  }
  void wish(std::uint32_t node) {
    VolumeRecord changed = record();
    changed.wanted = {node};
    changed.declined = Declined::kNot;
    put(encode(changed));
  }
};

TEST_F(WishTest, WhoIsWantedCoordinatesInTheNextEpoch) {
  begin_both();
  wish(2);
  executor_.advance(1s);
  EXPECT_FALSE((*one_)->election.coordinates());
  EXPECT_TRUE((*two_)->election.coordinates());
  EXPECT_EQ((*one_)->deposed, 1);
  EXPECT_EQ((*two_)->epoch, 6u);
  EXPECT_EQ(record(), (VolumeRecord{kVolume, {6}, {2}, {3}, {{1}, {2}}}));
  executor_.advance(60s);
  EXPECT_TRUE((*two_)->election.coordinates()) << "nobody takes it back";
  wish(1);
  executor_.advance(1s);
  EXPECT_TRUE((*one_)->election.coordinates());
  EXPECT_EQ(record().epoch, Epoch{7});
}

TEST_F(WishTest, WhoCoordinatesStopsBeforeTheRecordSaysSo) {
  begin_both();
  NodeId then;
  (*one_)->on_deposed = [&] { then = record().coordinator; };
  wish(2);
  while (!(*two_)->election.coordinates()) {
    executor_.advance(1ms);
    ASSERT_FALSE((*one_)->election.coordinates() && record().coordinator != NodeId{1});
  }
  EXPECT_EQ(then, NodeId{1});
}

// The view may know of the wish before the store has answered who takes the volume.
TEST_F(WishTest, WhichComesWithTheRecordThatWasTakenIsSeen) {
  begin_both();
  std::optional<MemoryCandidate> four;
  begin(four, 4, false);
  executor_.advance(1s);
  one_.reset();
  while (record().coordinator != NodeId{2}) executor_.advance(1ms);
  ASSERT_FALSE((*two_)->election.coordinates()) << "it is not answered yet";
  wish(4);
  executor_.advance(2s);
  EXPECT_TRUE((*four)->election.coordinates());
  EXPECT_EQ((*two_)->deposed, 1);
}

TEST_F(WishTest, OfAVolumeThatNobodyTakesByHimselfToo) {
  begin_both(false);
  wish(2);
  executor_.advance(1s);
  EXPECT_TRUE((*two_)->election.coordinates());
}

TEST_F(WishTest, OfADeadCoordinatorIsFollowedWithoutIt) {
  begin_both(false);
  one_.reset();
  executor_.advance(20s);
  EXPECT_FALSE((*two_)->election.coordinates()) << "it waits to be told";
  wish(2);
  executor_.advance(1s);
  EXPECT_TRUE((*two_)->election.coordinates());
  EXPECT_EQ((*two_)->epoch, 6u);
}

TEST_F(WishTest, WhileTheDeadOnesLeaseGoesOnNothingIsTaken) {
  begin_both(false);
  one_.reset();
  wish(2);
  executor_.advance(1s);
  EXPECT_FALSE((*two_)->election.coordinates());
  executor_.advance(10s);
  EXPECT_TRUE((*two_)->election.coordinates());
}

TEST_F(WishTest, OfWhoIsNotThereIsDeclined) {
  begin(one_, 1);
  executor_.advance(1s);
  wish(2);
  executor_.advance(1s);
  EXPECT_TRUE((*one_)->election.coordinates());
  EXPECT_EQ((*one_)->deposed, 0);
  EXPECT_EQ(record().wanted, NodeId{});
  EXPECT_EQ(record().declined, Declined::kNotAlive);
  EXPECT_EQ(record().epoch, Epoch{5});
}

TEST_F(WishTest, OfWhoLacksSomethingIsDeclined) {
  begin_both();
  (*one_)->others_may_follow = false;
  wish(2);
  executor_.advance(1s);
  EXPECT_TRUE((*one_)->election.coordinates());
  EXPECT_EQ((*one_)->deposed, 0);
  EXPECT_EQ(record().declined, Declined::kCatchingUp);
  (*one_)->others_may_follow = true;
  wish(2);
  executor_.advance(1s);
  EXPECT_TRUE((*two_)->election.coordinates());
  EXPECT_EQ(record().declined, Declined::kNot);
}

TEST_F(WishTest, OfWhoCoordinatesAlreadyIsTakenOut) {
  begin_both();
  wish(1);
  executor_.advance(1s);
  EXPECT_EQ((*one_)->deposed, 0);
  EXPECT_EQ(record(), (VolumeRecord{kVolume, {5}, {1}, {3}, {{1}, {2}}}));
}

TEST_F(WishTest, WhoNeverBeginsIsNotWaitedForForEver) {
  begin_both(false);
  // It is alive, and its election looks at nothing.
  (*two_)->ready = false;
  wish(2);
  executor_.advance(2s);
  EXPECT_EQ(record().coordinator, NodeId{});
  EXPECT_FALSE((*one_)->election.coordinates()) << "the other one has its time";
  executor_.advance(10s);
  EXPECT_TRUE((*one_)->election.coordinates());
  EXPECT_EQ((*one_)->epoch, 6u);
  EXPECT_EQ(record().declined, Declined::kNotTaken);
}

TEST_F(WishTest, WhoDiesBeforeItBeginsIsNotWaitedFor) {
  begin_both(false);
  (*two_)->ready = false;
  wish(2);
  while (record().coordinator != NodeId{}) executor_.advance(1ms);
  (*two_)->lease.stop([] {});
  executor_.advance(1s);
  EXPECT_TRUE((*one_)->election.coordinates());
  EXPECT_EQ(record().declined, Declined::kNotAlive);
}

TEST_F(WishTest, WhoDiesWhenItHasLetGoIsNotNeeded) {
  begin_both(false);
  (*one_)->on_deposed = [&] { one_->lose_answers(1); };
  wish(2);
  while (record().coordinator == NodeId{1}) executor_.advance(1ms);
  one_.reset();
  executor_.advance(1s);
  EXPECT_TRUE((*two_)->election.coordinates());
}

// What it was about to write is never written.
TEST_F(WishTest, WhoDiesBeforeItHasLetGoIsOutlivedByTheWish) {
  begin_both(false);
  (*one_)->on_deposed = [&] { one_->cut(true); };
  wish(2);
  executor_.advance(1s);
  EXPECT_FALSE((*two_)->election.coordinates());
  executor_.advance(10s);
  EXPECT_TRUE((*two_)->election.coordinates()) << "its lease has ended";
  one_->cut(false);
  executor_.advance(10s);
  EXPECT_FALSE((*one_)->election.coordinates());
}

TEST_F(WishTest, ALostAnswerCostsNoTurn) {
  for (const unsigned lost : {1u, 2u, 3u}) {
    one_.reset();
    two_.reset();
    executor_.advance(20s);
    put(encode(VolumeRecord{kVolume, {4}, {}, {3}, {{1}, {2}}}));
    begin_both();
    one_->lose_answers(lost);
    two_->lose_answers(lost);
    wish(2);
    executor_.advance(20s);
    EXPECT_NE((*one_)->election.coordinates(), (*two_)->election.coordinates()) << lost;
    EXPECT_EQ(record().wanted, NodeId{}) << lost;
  }
}

TEST_F(WishTest, WhoBeginsAnewLetsGoAtOnce) {
  begin_both();
  one_->cut(true);
  wish(2);
  one_.reset();
  begin(one_, 1);
  executor_.advance(2s);
  EXPECT_EQ((*one_)->elected, 0);
  EXPECT_TRUE((*two_)->election.coordinates());
}

// Wishes at any time, from whoever, while leases come and go: in the end one coordinates.
TEST_F(WishTest, HoweverTheyComeOneCoordinatesInTheEnd) {
  begin_both();
  std::uint64_t state = 7;
  const auto below = [&](std::uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
  };
  for (int round = 0; round < 300; ++round) {
    switch (below(5)) {
      case 0: one_->cut(below(2) == 0); break;
      case 1: two_->cut(below(2) == 0); break;
      case 2: one_->lose_answers(1); break;
      default: wish(1 + static_cast<std::uint32_t>(below(2)));
    }
    for (std::uint64_t left = below(1500); left > 0; --left) {
      executor_.advance(1ms);
      const bool both = (*one_)->election.coordinates() && (*one_)->lease.held() &&
                        (*two_)->election.coordinates() && (*two_)->lease.held();
      ASSERT_FALSE(both) << round;
    }
  }
  one_->cut(false);
  two_->cut(false);
  executor_.advance(30s);
  EXPECT_NE((*one_)->election.coordinates(), (*two_)->election.coordinates());
  EXPECT_EQ(record().wanted, NodeId{});
}

// ---- nodes that store nothing of the volume: three

// Whoever else stood by, and whatever it lacks.
TEST_F(WishTest, WhoCannotServeHandsOver) {
  begin_both();
  (*one_)->others_may_follow = false;
  (*one_)->election.hand_over({2});
  EXPECT_EQ((*one_)->deposed, 1);
  executor_.advance(2s);
  EXPECT_TRUE((*two_)->election.coordinates());
  EXPECT_FALSE((*one_)->election.coordinates());
  EXPECT_EQ(record(), (VolumeRecord{kVolume, {6}, {2}, {3}, {{1}, {2}}}));
}

TEST_F(WishTest, ToWhoIsNotThereNothingIsHandedOverYet) {
  begin_both();
  two_.reset();
  executor_.advance(30s);
  (*one_)->election.hand_over({2});
  executor_.advance(30s);
  EXPECT_TRUE((*one_)->election.coordinates());
  begin(two_, 2);
  executor_.advance(2s);
  EXPECT_TRUE((*two_)->election.coordinates());
  EXPECT_FALSE((*one_)->election.coordinates());
}

class AwayTest : public WishTest {
 protected:
  static constexpr NodeId kAlone{3};
  static constexpr NodeId kLogger{4};
  void put_record(NodeId coordinator, bool away) {
    VolumeRecord record{kVolume, {4}, coordinator, kLogger, {{1}, {2}}};
    if (away) record.away = replication::LogAway{{5}, {6}, {7}};
    put(encode(record));
  }

  std::optional<MemoryCandidate> alone_;
};

TEST_F(AwayTest, WhoStoresNothingCoordinatesWhileTheLoggerIsThere) {
  put_record({}, false);
  begin(alone_, 3);
  executor_.advance(1s);
  EXPECT_TRUE((*alone_)->election.coordinates());
  EXPECT_EQ(record().coordinator, kAlone);
}

TEST_F(AwayTest, WhileTheLoggerIsAwayStorageNodesAloneCoordinate) {
  put_record({}, true);
  begin(alone_, 3);
  executor_.advance(20s);
  EXPECT_FALSE((*alone_)->election.coordinates());
  begin(one_, 1);
  executor_.advance(1s);
  EXPECT_TRUE((*one_)->election.coordinates());
  one_.reset();
  executor_.advance(20s);
  EXPECT_FALSE((*alone_)->election.coordinates()) << "also of a dead one's volume";
  put_record({}, false);
  executor_.advance(5s);
  EXPECT_TRUE((*alone_)->election.coordinates());
}

TEST_F(AwayTest, WhoFindsItselfInSuchARecordLetsGo) {
  put_record(kAlone, true);
  begin(alone_, 3);
  begin(one_, 1);
  executor_.advance(2s);
  EXPECT_FALSE((*alone_)->election.coordinates());
  EXPECT_EQ((*alone_)->elected, 0);
  EXPECT_TRUE((*one_)->election.coordinates());
  EXPECT_EQ(record().coordinator, NodeId{1});
  EXPECT_TRUE(record().away.has_value());
}

TEST_F(AwayTest, ItIsNotWantedThen) {
  put_record({}, true);
  begin(alone_, 3);
  begin(one_, 1);
  executor_.advance(1s);
  ASSERT_TRUE((*one_)->election.coordinates());
  wish(3);
  executor_.advance(1s);
  EXPECT_TRUE((*one_)->election.coordinates());
  EXPECT_EQ((*one_)->deposed, 0);
  EXPECT_EQ(record().wanted, NodeId{});
  EXPECT_EQ(record().declined, Declined::kLoggerAway);
}

TEST_F(AwayTest, NobodyWaitsForItThen) {
  put_record({}, true);
  wish(3);
  begin(alone_, 3);
  executor_.advance(1s);
  begin(one_, 1);
  executor_.advance(1s);
  EXPECT_TRUE((*one_)->election.coordinates());
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
