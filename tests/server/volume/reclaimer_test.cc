#include "server/volume/reclaimer.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>

#include "tests/server/volume/reclaimer_fixture.h"

namespace mariner::volume {
namespace {

TEST_F(ReclaimerTest, TheTrackThatIsWrittenToStays) {
  write(1, 5);
  drain();
  EXPECT_EQ(reclaim(), 0u);
  next_track();
  EXPECT_EQ(reclaim(), 0u) << "nothing stands behind it yet";
  write(2, 6);
  drain();
  EXPECT_EQ(reclaim(), 1u);
  EXPECT_EQ(at(2, 1), 5u);
}

TEST_F(ReclaimerTest, WhatIsToBeKeptStays) {
  write(1, 5);
  write(1, 6);
  next_track();
  write(1, 7);
  drain();
  EXPECT_EQ(reclaim(rig_.answers().moment_of({1}).time), 0u);
  EXPECT_EQ(rig_.volume().index().oldest().sequence, SequenceNumber{0});
  EXPECT_EQ(at(1, 1), 5u);
  EXPECT_EQ(reclaim(), 1u);
  EXPECT_GE(rig_.volume().index().oldest().sequence, SequenceNumber{2});
}

TEST_F(ReclaimerTest, TheImageIsFilledFirst) {
  write(1, 5);
  next_track();
  write(2, 6);
  EXPECT_TRUE(rig_.reclaim([](VolumeId) { return kKeepNothing; }));
  rig_.manual().run_ready();
  EXPECT_EQ(rig_.tracks_freed(), 0u) << "it has asked for it";
  rig_.manual().advance(std::chrono::seconds(3));
  EXPECT_EQ(reclaim(), 1u);
}

// What no moment shows any more needs no before-image, for which the log may have no room.
TEST_F(ReclaimerTest, WhatTheImageLacksCanBeGivenUpBeforeItHasIt) {
  make_base();
  ASSERT_FALSE(HasFatalFailure());
  write(1, 8);
  next_track();
  write(1, 9);
  ASSERT_EQ(rig_.volume().durable(), SequenceNumber{3});
  EXPECT_TRUE(rig_.reclaim([](VolumeId) { return kKeepNothing; }));
  rig_.manual().run_ready();
  EXPECT_EQ(rig_.tracks_freed(), 2u) << "the image lacks what stands there";
  EXPECT_EQ(rig_.volume().index().oldest().sequence, SequenceNumber{5});
  EXPECT_EQ(rig_.volume().index().stored_horizon(), SequenceNumber{5});
  rig_.crash();
  rig_.start();
  EXPECT_EQ(rig_.volume().index().oldest().sequence, SequenceNumber{5});
  drain();
  EXPECT_EQ(rig_.volume().durable(), SequenceNumber{5});
  const auto source_of_base = [this] {
    return rig_.answers().locate({{1}, {1}}, SequenceNumber{0})[0].source;
  };
  EXPECT_EQ(source_of_base(), index::LocatedRun::Source::kBase)
      << "nothing was logged before it was overwritten";
  EXPECT_EQ(rig_.early_overwrites(), 0u);
  EXPECT_EQ(at(5, 1), 9u);
  // What a moment still shows is logged when its record goes.
  write(1, 10);
  const SequenceNumber ten = rig_.volume().index().newest().sequence;
  drain();
  next_track();
  write(3, 11);
  drain();
  while (reclaim(rig_.answers().moment_of(ten).time) > 0) {
  }
  EXPECT_GE(rig_.volume().index().given_up(), SequenceNumber{4});
  EXPECT_EQ(at(5, 1), 9u);
  EXPECT_EQ(at(ten.value, 1), 10u);
}

TEST_F(ReclaimerTest, ARollbackThatTheImageLacksKeepsWhatItGoesBackTo) {
  write(1, 5);
  next_track();
  write(1, 6);
  drain();
  rig_.image_disk().fail_writes(1, test::FaultyDisk::Remains::kNothing);  // until it is tried again
  std::optional<bool> back;
  rig_.volume().live().rollback({SequenceNumber{1}, {}},
                                [&](const Result<replication::Stamp>& r) { back = r.has_value(); });
  rig_.manual().run_ready();
  ASSERT_EQ(back, true);
  ASSERT_EQ(rig_.volume().durable(), SequenceNumber{2});
  EXPECT_TRUE(rig_.reclaim([](VolumeId) { return kKeepNothing; }));
  rig_.manual().run_ready();
  EXPECT_EQ(rig_.tracks_freed(), 0u);
  EXPECT_LE(rig_.volume().index().oldest().sequence, SequenceNumber{2});
  drain();
  EXPECT_EQ(at(3, 1), 5u);
  EXPECT_EQ(reclaim(), 1u);
  EXPECT_EQ(at(3, 1), 5u);
}

TEST_F(ReclaimerTest, TheHorizonAndTheNumbersSurviveARestart) {
  make_base();
  ASSERT_FALSE(HasFatalFailure());
  const SequenceNumber oldest = rig_.volume().index().oldest().sequence;
  const SequenceNumber newest = rig_.volume().index().newest().sequence;
  rig_.crash();
  rig_.start();
  EXPECT_EQ(rig_.volume().index().oldest().sequence, oldest);
  EXPECT_EQ(rig_.volume().index().newest().sequence, newest);
  EXPECT_EQ(tag(rig_.volume().live(), 1), 6u);
  write(1, 8);
  drain();
  EXPECT_EQ(at(newest.value, 1), 6u) << "logged before it was overwritten";
  EXPECT_EQ(rig_.early_overwrites(), 0u);
}

TEST_F(ReclaimerTest, NoRollbackGoesBeforeTheHorizon) {
  write(1, 5);
  next_track();
  write(1, 6);
  drain();
  ASSERT_EQ(reclaim(), 1u);
  std::optional<ErrorCode> code;
  rig_.volume().live().rollback(
      {SequenceNumber{0}, {}}, [&](const Result<replication::Stamp>& r) { code = r.error().code; });
  EXPECT_EQ(code, ErrorCode::kOutsideWindow);
}

class ReclaimerOfZerosTest : public ReclaimerTest {
 protected:
  static constexpr std::uint64_t kBlocks = 200'000;
  ReclaimerOfZerosTest() : ReclaimerTest({.blocks = kBlocks}) {}
  // That were ever done.
  std::uint64_t lookups() {
    const auto counts = rig_.volume().index().lookups().counts();
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }
};

TEST_F(ReclaimerOfZerosTest, ALongRunIsJudgedInPieces) {
  write(77'777, 5);
  rig_.volume().live().trim({0, kBlocks * kBlockBytes}, TrimMode::kUnmap,
                            [](const Result<void>& r) { EXPECT_TRUE(r); });
  rig_.manual().run_ready();
  write(150'000, 6);
  drain();
  next_track();
  write(1, 7);
  drain();
  const std::uint64_t before = lookups();
  ASSERT_EQ(reclaim(), 1u);
  // The blocks that were written, and four pieces; when it is judged, and when it is forgotten.
  EXPECT_GE(lookups() - before, 2u * (1 + 4));
  EXPECT_EQ(tag(rig_.volume().live(), 77'777), 0u);
  EXPECT_EQ(tag(rig_.volume().live(), 150'000), 6u);
  EXPECT_EQ(rig_.early_overwrites(), 0u);
}

// Blocks 1 and 2 hold 5 and 6 at #2, and are overwritten so often that the index remembers it.
class ReclaimerOfOverwrittenTest : public ReclaimerTest, public ::testing::WithParamInterface<int> {
 protected:
  static constexpr std::uint64_t kTimes = 3 * index::RecentWrites::kWritesMin;
  ReclaimerOfOverwrittenTest() : ReclaimerTest({.blocks = 64}) {}
  void overwrite() {
    write(1, 5);
    write(2, 6);
    next_track();
    for (std::uint64_t i = 0; i < kTimes; ++i) write(1 + i % 2, 100 + i);
    drain();
  }
  std::uint64_t lookups() {
    const auto counts = rig_.volume().index().lookups().counts();
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }
  void expect(std::uint64_t one, std::uint64_t two) {
    EXPECT_EQ(tag(rig_.volume().live(), 1), one);
    EXPECT_EQ(tag(rig_.volume().live(), 2), two);
  }
};

TEST_F(ReclaimerOfOverwrittenTest, NothingIsLookedUp) {
  overwrite();
  const std::uint64_t before = lookups();
  EXPECT_EQ(reclaim(), 1u);
  EXPECT_EQ(lookups(), before);
  EXPECT_GT(rig_.volume().index().oldest().sequence, SequenceNumber{2});
  expect(100 + kTimes - 2, 100 + kTimes - 1);
}

// A rollback that comes at whatever turn of a try goes back to all that it may, or nowhere.
TEST_P(ReclaimerOfOverwrittenTest, ARollbackMeanwhileLosesNothing) {
  overwrite();
  ASSERT_TRUE(rig_.reclaim([](VolumeId) { return kKeepNothing; }));
  for (int i = 0; i < GetParam(); ++i) rig_.manual().turn();
  std::optional<bool> back;
  rig_.volume().live().rollback({SequenceNumber{2}, {}},
                                [&](const Result<replication::Stamp>& r) { back = r.has_value(); });
  rig_.manual().advance(std::chrono::seconds(3));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(rig_.tracks_freed(), *back ? 0u : 1u);
  const auto check = [&] { *back ? expect(5, 6) : expect(100 + kTimes - 2, 100 + kTimes - 1); };
  check();
  drain();
  rig_.crash();
  rig_.start();
  check();
  EXPECT_EQ(rig_.early_overwrites(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Turns, ReclaimerOfOverwrittenTest, ::testing::Range(0, 16));

}  // namespace
}  // namespace mariner::volume
