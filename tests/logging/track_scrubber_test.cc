#include "logging/track_scrubber.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "logging/track_recycler.h"
#include "tests/logging/log_testing.h"
#include "tests/support/watched_disk.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using mariner::test::WatchedDisk;
using test::kTrackBytes;
using test::LogRig;
using test::ManualExecutor;
using test::record_of;
using Kind = TrackDamage::Kind;

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kPieceBytes = std::uint64_t{TrackVerifier::kPieceBlocks} * kBlockBytes;

class TrackScrubberTest : public ::testing::Test {
 protected:
  explicit TrackScrubberTest(std::uint64_t tracks = 6)
      : rig_({.tracks = tracks, .writer = {.reserve_tracks = 0}}) {
    rig_.open();
  }
  ~TrackScrubberTest() override { stop(); }

  void start(std::uint64_t bytes_per_second = 16 * kMiB) {
    scrubber_ = std::make_unique<TrackScrubber>(
        TrackScrubber::Parts{disk_, rig_.executor, rig_.superblock, *rig_.tracks},
        TrackScrubber::Options{bytes_per_second},
        TrackScrubber::Owner{[this] { return rig_.log_disk->current_allocation(); },
                             [this] { return busy_; },
                             [this](const TrackDamage& damage) { reports_.push_back(damage); }});
    scrubber_->start();
  }
  void stop() {
    if (!scrubber_) return;
    scrubber_->stop();
    rig_.executor.run_until_idle();
    EXPECT_TRUE(scrubber_->idle());
    scrubber_.reset();
  }
  // A round of this log at the rate of start() takes three seconds.
  void one_round() {
    const std::uint64_t rounds = scrubber_->progress().rounds;
    for (int i = 0; i < 100 && scrubber_->progress().rounds == rounds; ++i) {
      rig_.executor.advance(100ms);
    }
    EXPECT_EQ(scrubber_->progress().rounds, rounds + 1);
  }
  // The present track is complete, and `count` batches of three blocks stand in the next.
  std::vector<LogLocation> next_track(std::size_t count) {
    if (written_ > 0) rig_.writer->leave_tracks();
    auto at = rig_.append_batches(written_ + 1, count, 3);
    written_ += count;
    return at;
  }
  void flip(std::uint64_t block) { rig_.disk.flip_bit(block * kBlockBytes + 99, 1); }
  void release(std::uint64_t oldest) {
    TrackRecycler recycler(*rig_.log_disk, *rig_.tracks, *rig_.writer);
    bool released = false;
    recycler.release(oldest, [&](const Result<void>& result) { released = result.has_value(); });
    for (int i = 0; i < 100 && !released; ++i) rig_.executor.run_ready();
    EXPECT_TRUE(released);
  }
  [[nodiscard]] bool reads_touch(std::uint64_t track, std::uint64_t from_block = 0) const {
    const std::uint64_t first = rig_.superblock.track_first_sector(track) + from_block;
    const std::uint64_t end = rig_.superblock.track_first_sector(track + 1);
    for (const ByteRange& read : disk_.reads()) {
      if (read.offset < end * kBlockBytes && first * kBlockBytes < read.end()) return true;
    }
    return false;
  }
  [[nodiscard]] std::uint64_t read_bytes() const { return disk_.bytes_read(); }

  LogRig rig_;
  WatchedDisk disk_{rig_.disk};
  std::unique_ptr<TrackScrubber> scrubber_;
  std::vector<TrackDamage> reports_;
  std::uint64_t written_ = 0;
  bool busy_ = false;
};

TEST_F(TrackScrubberTest, VerifiesTheCompleteTracksAndLeavesTheOneBeingFilledAlone) {
  next_track(5);
  next_track(5);
  next_track(5);
  start();
  one_round();
  EXPECT_TRUE(reports_.empty());
  const TrackScrubber::Progress progress = scrubber_->progress();
  EXPECT_EQ(progress.tracks, 2u);
  EXPECT_GT(progress.last_round, VersionTime{ManualExecutor::kWallStartNs});
  EXPECT_LE(progress.last_round, rig_.executor.wall_time());
  EXPECT_GT(progress.bytes, 2 * 5 * 4 * kBlockBytes);
  EXPECT_FALSE(reads_touch(2, 1)) << "only its header, to tell where the track before it ends";
  EXPECT_FALSE(reads_touch(3));
}

TEST_F(TrackScrubberTest, AnEmptyLogIsARoundToo) {
  start();
  one_round();
  EXPECT_EQ(scrubber_->progress().tracks, 0u);
  EXPECT_TRUE(disk_.reads().empty());
}

TEST_F(TrackScrubberTest, ReportsEachDamageOnceAndAgainWhenItGrows) {
  const auto at = next_track(5);
  const auto second = next_track(5);
  next_track(1);
  start();
  one_round();
  flip(at[1].payload_sector());
  flip(second[3].batch_sector);
  one_round();
  ASSERT_EQ(reports_.size(), 2u);
  EXPECT_EQ(reports_[0].sequence, SequenceNumber{2});
  EXPECT_EQ(reports_[1].kind, Kind::kBatches);
  EXPECT_EQ(reports_[1].first_batch, 9u);
  EXPECT_EQ(scrubber_->progress().damaged_blocks, 1u + 4u);
  EXPECT_EQ(scrubber_->damage(), reports_);
  one_round();
  EXPECT_EQ(reports_.size(), 2u);
  flip(at[4].payload_sector());
  one_round();
  ASSERT_EQ(reports_.size(), 3u);
  EXPECT_EQ(reports_[2].sequence, SequenceNumber{5});
  EXPECT_EQ(scrubber_->progress().damaged_blocks, 6u);
}

TEST_F(TrackScrubberTest, WhatIsSoundAgainIsForgotten) {
  const auto at = next_track(5);
  next_track(1);
  start();
  rig_.disk.fail_reads({at[2].payload_sector() * kBlockBytes, kBlockBytes});
  one_round();
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_TRUE(reports_[0].unreadable);
  EXPECT_EQ(scrubber_->progress().damaged_blocks, 1u);
  rig_.disk.fail_reads({});
  one_round();
  EXPECT_EQ(scrubber_->progress().damaged_blocks, 0u);
  EXPECT_TRUE(scrubber_->damage().empty());
}

TEST_F(TrackScrubberTest, ADamagedTrackHeaderDoesNotHideWhatIsBehindOrBeforeIt) {
  const auto first = next_track(5);
  const auto second = next_track(5);
  const auto third = next_track(5);
  next_track(1);
  flip(rig_.superblock.track_first_sector(1));
  flip(first[4].payload_sector());
  flip(second[0].payload_sector());
  flip(third[4].payload_sector());
  start();
  one_round();
  ASSERT_EQ(reports_.size(), 4u);
  EXPECT_EQ(reports_[0].sequence, SequenceNumber{5});
  EXPECT_EQ(reports_[1].kind, Kind::kTrackHeader);
  EXPECT_EQ(reports_[1].track, 1u);
  EXPECT_EQ(reports_[2].sequence, SequenceNumber{6});
  EXPECT_EQ(reports_[3].sequence, SequenceNumber{15});
}

TEST_F(TrackScrubberTest, ATrackThatLostItsHeaderAndItsFirstBatchIsMissedByNumber) {
  next_track(5);
  const auto second = next_track(5);
  next_track(5);
  next_track(1);
  flip(rig_.superblock.track_first_sector(1));
  flip(second[0].batch_sector);
  start();
  one_round();
  ASSERT_EQ(reports_.size(), 2u);
  EXPECT_EQ(reports_[0].kind, Kind::kTrackHeader);
  EXPECT_EQ(reports_[1].kind, Kind::kBatches);
  EXPECT_EQ(reports_[1].first_batch, 6u);
  EXPECT_EQ(reports_[1].last_batch, 6u);
  EXPECT_EQ(reports_[1].after, record_of(1, 5).time);
  EXPECT_EQ(reports_[1].before, record_of(1, 7).time);
}

TEST_F(TrackScrubberTest, ATrackThatAFailedWriteLeftUnusedIsNoDamage) {
  next_track(5);
  rig_.writer->leave_tracks();
  rig_.disk.fail_writes(1, test::FaultyDisk::Remains::kSomeSectors);
  rig_.append_batches(6, 3, 3);
  written_ = 8;
  next_track(1);
  start();
  one_round();
  EXPECT_TRUE(reports_.empty());
  EXPECT_EQ(scrubber_->progress().tracks, 3u);
}

TEST_F(TrackScrubberTest, ATrackThatIsReleasedWhileItIsReadIsNoDamage) {
  const auto at = next_track(5);
  next_track(5);
  next_track(1);
  flip(at[0].payload_sector());
  start();
  rig_.disk.hold();
  rig_.executor.advance(1s);
  while (disk_.reads().size() < 2) {  // the header of the next track, then the first piece
    rig_.disk.release();
    rig_.executor.run_ready();
    rig_.disk.hold();
    rig_.executor.advance(100ms);
  }
  ASSERT_EQ(rig_.disk.in_flight(), 1u);
  // As the recycler does, whose writes need not wait for the read.
  for (const TrackList::Write& write : rig_.tracks->release(2)) {
    ASSERT_TRUE(write_list(rig_.disk, rig_.superblock.log, {&write, 1}));
  }
  rig_.tracks->committed();
  ASSERT_EQ(rig_.tracks->oldest(), 2u);
  rig_.disk.release();
  one_round();
  EXPECT_TRUE(reports_.empty());
  EXPECT_EQ(scrubber_->progress().damaged_blocks, 0u);
  EXPECT_EQ(scrubber_->progress().tracks, 1u) << "it goes on with the next";
}

// Its pages are durable, and the device is discarding it: what it reads as is nobody's.
TEST_F(TrackScrubberTest, ATrackThatIsBeingReleasedIsNotLookedAt) {
  const auto at = next_track(5);
  next_track(5);
  next_track(1);
  for (const TrackList::Write& write : rig_.tracks->release(2)) {
    ASSERT_TRUE(write_list(rig_.disk, rig_.superblock.log, {&write, 1}));
  }
  ASSERT_EQ(rig_.tracks->oldest(), 1u);
  ASSERT_EQ(rig_.tracks->kept_from(), 2u);
  rig_.disk.overwrite(at[0].batch_sector * kBlockBytes, std::vector<std::byte>(16 * kBlockBytes));
  start();
  one_round();
  EXPECT_TRUE(reports_.empty());
  EXPECT_EQ(scrubber_->progress().tracks, 1u) << "the next one";
  rig_.tracks->abandoned();
  one_round();
  EXPECT_FALSE(reports_.empty()) << "it was kept after all";
}

TEST_F(TrackScrubberTest, DamageGoesWithTheTrackThatIsReleased) {
  const auto at = next_track(5);
  next_track(5);
  next_track(1);
  flip(at[0].payload_sector());
  start();
  one_round();
  EXPECT_EQ(scrubber_->progress().damaged_blocks, 1u);
  release(2);
  EXPECT_EQ(scrubber_->progress().damaged_blocks, 0u);
  EXPECT_TRUE(scrubber_->damage().empty());
}

TEST_F(TrackScrubberTest, ALogThatHasGoneRoundIsVerifiedInTheOrderOfItsAllocations) {
  for (int i = 0; i < 3; ++i) next_track(2);
  release(3);
  std::vector<LogLocation> at;
  for (int i = 0; i < 3; ++i) next_track(2);
  const auto again = next_track(2);  // allocation 7, in a track of an earlier one
  next_track(1);
  EXPECT_LT(again[0].batch_sector, rig_.superblock.track_first_sector(2));
  flip(again[1].payload_sector());
  start();
  one_round();
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_EQ(reports_[0].allocation, 7u);
  EXPECT_EQ(scrubber_->progress().tracks, 5u);
}

TEST_F(TrackScrubberTest, KeepsToItsRateAndCatchesNothingUp) {
  for (int i = 0; i < 4; ++i) {
    if (i > 0) rig_.writer->leave_tracks();
    rig_.append_batches(written_ + 1, 7, 250);
    written_ += 7;
  }
  start(kMiB);
  const auto bytes_in = [&](std::chrono::nanoseconds time) {
    const std::uint64_t before = read_bytes();
    rig_.executor.advance(time);
    return read_bytes() - before;
  };
  EXPECT_LE(bytes_in(4s), 4 * kMiB + kPieceBytes);
  EXPECT_GE(read_bytes(), 4 * kMiB - kPieceBytes);
  for (const ByteRange& read : disk_.reads()) EXPECT_LE(read.length, kMiB);
  rig_.disk.hold();  // the disk hangs for a while
  rig_.executor.advance(10s);
  EXPECT_LE(rig_.disk.in_flight(), 1u) << "one at a time";
  rig_.disk.release();
  EXPECT_LE(bytes_in(1s), kMiB + kPieceBytes);
}

TEST_F(TrackScrubberTest, ARoundTakesAsLongAsTheWholeLogWould) {
  next_track(5);
  next_track(1);
  start(16 * kMiB);
  one_round();
  const std::uint64_t after_one = read_bytes();
  EXPECT_GT(after_one, 0u);
  rig_.executor.advance(2500ms);  // 48 MiB at 16 MiB/s are three seconds
  EXPECT_EQ(read_bytes(), after_one);
  rig_.executor.advance(600ms);
  EXPECT_GT(read_bytes(), after_one);
}

TEST_F(TrackScrubberTest, LetsTheForegroundGoFirstButNotForEver) {
  next_track(5);
  next_track(1);
  busy_ = true;
  start();
  rig_.executor.advance(40ms);
  EXPECT_TRUE(disk_.reads().empty());
  rig_.executor.advance(20ms);
  EXPECT_EQ(disk_.reads().size(), 1u);
  busy_ = false;
  rig_.executor.advance(60ms);
  EXPECT_GT(disk_.reads().size(), 1u);
}

TEST_F(TrackScrubberTest, ZeroTurnsItOff) {
  next_track(5);
  next_track(1);
  start(0);
  EXPECT_FALSE(scrubber_->enabled());
  rig_.executor.advance(3600s);
  EXPECT_TRUE(disk_.reads().empty());
  EXPECT_EQ(scrubber_->progress().rounds, 0u);
}

TEST_F(TrackScrubberTest, StopsAfterTheReadInFlight) {
  const auto at = next_track(5);
  next_track(1);
  flip(at[0].payload_sector());
  start();
  rig_.disk.hold();
  rig_.executor.advance(10ms);
  ASSERT_EQ(rig_.disk.in_flight(), 1u);
  EXPECT_FALSE(scrubber_->idle());
  scrubber_->stop();
  EXPECT_FALSE(scrubber_->idle());
  rig_.disk.release();
  rig_.executor.run_until_idle();
  EXPECT_TRUE(scrubber_->idle());
  EXPECT_EQ(disk_.reads().size(), 1u);
  EXPECT_TRUE(reports_.empty());
}

TEST_F(TrackScrubberTest, ADiskThatFailsIsReportedAndSurvived) {
  next_track(5);
  next_track(5);
  next_track(1);
  start();
  rig_.disk.fail_reads({rig_.superblock.track_first_sector(0) * kBlockBytes, kTrackBytes});
  for (int i = 0; i < 10 && reports_.empty(); ++i) rig_.executor.advance(1s);
  ASSERT_EQ(reports_.size(), 1u);
  EXPECT_TRUE(reports_[0].unreadable);
  EXPECT_EQ(reports_[0].track, 0u);
  rig_.disk.fail_reads({});
  one_round();
  EXPECT_GE(scrubber_->progress().tracks, 2u);
}

class TrackScrubberOfManyTracks : public TrackScrubberTest {
 protected:
  TrackScrubberOfManyTracks() : TrackScrubberTest(TrackScrubber::kDamagedTracksMax + 2) {}
};

TEST_F(TrackScrubberOfManyTracks, RemembersSoManyAndReportsTheOthersInEachRound) {
  for (std::size_t i = 0; i < TrackScrubber::kDamagedTracksMax + 1; ++i) {
    flip(next_track(1)[0].payload_sector());
  }
  next_track(1);
  start(1024 * kMiB);
  rig_.executor.advance(1s);
  one_round();
  EXPECT_EQ(scrubber_->progress().damaged_blocks, TrackScrubber::kDamagedTracksMax);
  const std::uint64_t rounds = scrubber_->progress().rounds;
  EXPECT_EQ(reports_.size(), TrackScrubber::kDamagedTracksMax + rounds);
  one_round();
  EXPECT_EQ(scrubber_->progress().damaged_blocks, TrackScrubber::kDamagedTracksMax);
  EXPECT_EQ(reports_.size(), TrackScrubber::kDamagedTracksMax + rounds + 1);
}

}  // namespace
}  // namespace mariner::logging
