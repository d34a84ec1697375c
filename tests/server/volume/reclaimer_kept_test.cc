// Moments that stay behind the horizon: server/volume/reclaimer_kept.cc.
#include <gtest/gtest.h>

#include <vector>

#include "tests/server/volume/reclaimer_fixture.h"

namespace mariner::volume {
namespace {

class ReclaimerKeptTest : public ReclaimerTest {
 protected:
  index::IndexMoment moment(std::uint64_t number) { return rig_.answers().moment_of({number}); }
  [[nodiscard]] bool can_be_opened(std::uint64_t number) {
    return rig_.volume().index().can_be_opened({number});
  }
  // Block 1 held 5, 6 and 7, in tracks that are complete.
  void write_three() {
    write(1, 5);
    write(2, 50);
    write(1, 6);
    next_track();
    write(1, 7);
    next_track();
    write(3, 8);
    drain();
  }
};

TEST_F(ReclaimerKeptTest, AMomentStaysWithoutThoseAroundIt) {
  write_three();
  const KeepWish wish{.moments = {moment(2)}};
  EXPECT_EQ(reclaim(kKeepNothing, wish), 1U);
  EXPECT_TRUE(can_be_opened(2));
  EXPECT_FALSE(can_be_opened(1));
  EXPECT_FALSE(can_be_opened(3));
  EXPECT_EQ(at(2, 1), 5U) << "written again";
  EXPECT_EQ(at(2, 2), 50U) << "the base";
  EXPECT_EQ(at(2, 3), 0U);
  // It goes round with the log as long as it is wished for.
  next_track();
  write(4, 9);
  drain();
  while (reclaim(kKeepNothing, wish) > 0) EXPECT_EQ(at(2, 1), 5U);
  EXPECT_EQ(at(2, 1), 5U);
}

TEST_F(ReclaimerKeptTest, ATimeMeansTheLastWriteUntilThen) {
  write_three();
  const VersionTime time{moment(2).time.ns};
  EXPECT_EQ(reclaim(kKeepNothing, {.times = {time}}), 1U);
  ASSERT_EQ(rig_.volume().index().kept().size(), 1U);
  EXPECT_EQ(rig_.volume().index().kept()[0].moment.sequence, SequenceNumber{2});
  EXPECT_EQ(rig_.answers().moment_at(time).sequence, SequenceNumber{2});
  EXPECT_EQ(at(2, 1), 5U);
}

// The index answers each at once, and so there is room for them on no stack.
TEST_F(ReclaimerKeptTest, TimesMayBeMany) {
  write_three();
  const std::vector<VersionTime> times(100'000, VersionTime{moment(2).time.ns});
  EXPECT_EQ(reclaim(kKeepNothing, {.times = times}), 1U);
  ASSERT_EQ(rig_.volume().index().kept().size(), 1U);
  EXPECT_EQ(at(2, 1), 5U);
}

TEST_F(ReclaimerKeptTest, WhatNobodyWishesForAnyMoreGoes) {
  write_three();
  EXPECT_EQ(reclaim(kKeepNothing, {.moments = {moment(2)}}), 1U);
  EXPECT_EQ(reclaim(), 1U);
  EXPECT_FALSE(can_be_opened(2));
}

TEST_F(ReclaimerKeptTest, ItIsThereAfterARestart) {
  write_three();
  EXPECT_EQ(reclaim(kKeepNothing, {.moments = {moment(2)}}), 1U);
  rig_.crash();
  rig_.start();
  EXPECT_TRUE(can_be_opened(2));
  EXPECT_EQ(at(2, 1), 5U);
}

TEST_F(ReclaimerKeptTest, ARollbackGoesBackToItAndKeepsIt) {
  write_three();
  EXPECT_EQ(reclaim(kKeepNothing, {.moments = {moment(2)}}), 1U);
  bool done = false;
  rig_.volume().live().rollback(moment(2), [&](const Result<replication::Stamp>& r) {
    EXPECT_TRUE(r);
    done = true;
  });
  rig_.manual().advance(std::chrono::seconds(1));
  ASSERT_TRUE(done);
  EXPECT_EQ(tag(*rig_.volume().live_layer(), 1), 5U);
  EXPECT_EQ(tag(*rig_.volume().live_layer(), 3), 0U);
  drain();
  reclaim();
  EXPECT_TRUE(can_be_opened(2)) << "the rollback's record stands";
  // When its record goes, what it brought back is the base.
  for (std::uint64_t tag_of_4 = 10; tag_of_4 < 14; ++tag_of_4) {
    next_track();
    write(4, tag_of_4);
    drain();
    reclaim();
  }
  EXPECT_FALSE(can_be_opened(2));
  EXPECT_EQ(tag(*rig_.volume().live_layer(), 1), 5U);
  EXPECT_EQ(tag(*rig_.volume().live_layer(), 3), 0U);
}

}  // namespace
}  // namespace mariner::volume
