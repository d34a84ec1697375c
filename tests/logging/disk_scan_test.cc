#include "logging/disk_scan.h"

#include <gtest/gtest.h>

#include <string>

#include "logging/superblock_store.h"
#include "tests/logging/array_rig.h"

namespace mariner::logging {
namespace {

using test::ArrayRig;
using test::kTrackBytes;
using test::LogRig;
using test::record_of;

// "1 2|3": the records of each track; what is damaged in brackets before those.
std::string tracks_text(DiskScan& scan) {
  std::string text;
  std::uint64_t frontier = scan.ordinal_frontier();
  for (;;) {
    auto track = scan.next();
    if (!track) return text + "error";
    if (!*track) return text;
    if (!text.empty()) text += "|";
    for (const LogDamage& damage : (*track)->damage) {
      text +=
          "[" + std::to_string(damage.first_batch) + ".." + std::to_string(damage.last_batch) + "]";
    }
    std::string records;
    for (const ScannedRecord& r : (*track)->records) {
      EXPECT_GE(r.record.ordinal, frontier) << "below what it had promised";
      records += (records.empty() ? "" : " ") + std::to_string(r.record.sequence.value);
    }
    text += records;
    EXPECT_GE(scan.ordinal_frontier(), frontier);
    frontier = scan.ordinal_frontier();
  }
}

class DiskScanTest : public ::testing::Test {
 protected:
  // Three tracks: two records of 1,020 blocks in each but the last, which has one.
  void SetUp() override {
    ASSERT_TRUE(rig_.open());
    at_ = rig_.append_batches(1, 5, 1020);
    rig_.close();
  }
  DiskScan open(unsigned threads = 0) {
    return *DiskScan::open(rig_.disk, rig_.superblock, threads);
  }
  LogRig rig_;
  std::vector<LogLocation> at_;
};

TEST_F(DiskScanTest, ReadsTrackByTrackAndFindsTheTail) {
  DiskScan scan = open();
  EXPECT_EQ(scan.tail().allocation, 0u);
  EXPECT_EQ(scan.ordinal_frontier(), 0u);
  EXPECT_EQ(tracks_text(scan), "1 2|3 4|5");
  EXPECT_EQ(scan.ordinal_frontier(), UINT64_MAX) << "no more";
  const DiskTail& tail = scan.tail();
  EXPECT_EQ(tail.allocation, 3u);
  EXPECT_EQ(tail.next_sector, at_[4].batch_sector + 1022);
  EXPECT_EQ(tail.next_batch, 6u);
  EXPECT_EQ(tail.previous_batch_sector, at_[4].batch_sector);
  EXPECT_EQ(tail.track_first_batch, 5u);
  ASSERT_EQ(tail.last_records.size(), 1u);
  EXPECT_EQ(tail.last_records.at(VolumeId{1}).sector, at_[4].batch_sector);
  EXPECT_EQ(scan.tracks().end(), 7u);
}

TEST_F(DiskScanTest, SaysAfterEachTrackWhatCanStillCome) {
  DiskScan scan = open();
  ASSERT_TRUE(scan.next().has_value());
  EXPECT_EQ(scan.ordinal_frontier(), 2u) << "batch 2 was dispatched when 1 was durable";
  ASSERT_TRUE(scan.next().has_value());
  EXPECT_EQ(scan.ordinal_frontier(), 4u);
  ASSERT_TRUE(scan.next().has_value());
  EXPECT_EQ(scan.ordinal_frontier(), UINT64_MAX);
  EXPECT_FALSE(scan.next()->has_value());
}

TEST_F(DiskScanTest, ReadersAheadChangeNothing) {
  for (const unsigned threads : {1u, 3u, 16u}) {
    DiskScan scan = open(threads);
    EXPECT_EQ(tracks_text(scan), "1 2|3 4|5");
    EXPECT_EQ(scan.tail().next_batch, 6u);
  }
}

TEST_F(DiskScanTest, CanBeLeftWhileItsReadersAreAhead) {
  DiskScan scan = open(2);
  ASSERT_TRUE(scan.next().has_value());
  const DiskScan moved = std::move(scan);
  EXPECT_EQ(moved.tail().allocation, 1u);
}

TEST_F(DiskScanTest, AnEmptyDiskHasNothingToCome) {
  rig_.superblock = *format_log(rig_.disk, test::log_id(0x77), 0, kTrackBytes, 1);
  DiskScan scan = open();
  EXPECT_EQ(scan.ordinal_frontier(), UINT64_MAX);
  EXPECT_EQ(tracks_text(scan), "");
  EXPECT_EQ(scan.tail().allocation, 0u);
  EXPECT_EQ(scan.tail().next_sector, 0u);
  EXPECT_EQ(scan.tail().next_batch, 1u);
}

TEST_F(DiskScanTest, ATrackThatIsMissingIsNoticedInTheNext) {
  rig_.disk.overwrite(kReservedBytes + kTrackBytes, std::vector<std::byte>(kTrackBytes));
  DiskScan scan = open();
  // The first track's end is that of the next one found.
  EXPECT_EQ(tracks_text(scan), "[3..4]1 2|5");
  rig_.disk.overwrite(kReservedBytes, std::vector<std::byte>(kTrackBytes));
  DiskScan again = open();
  EXPECT_EQ(tracks_text(again), "[1..4]5");
}

TEST_F(DiskScanTest, WhatWasReleasedIsNotMissing) {
  TrackList list = *read_track_list(rig_.disk, rig_.superblock);
  ASSERT_TRUE(write_list(rig_.disk, rig_.superblock.log, list.release(2)).has_value());
  DiskScan scan = open();
  EXPECT_EQ(scan.tail().allocation, 1u);
  EXPECT_EQ(scan.tail().next_batch, 3u);
  EXPECT_EQ(tracks_text(scan), "3 4|5");
}

TEST_F(DiskScanTest, AnErrorOfTheDiskIsAnError) {
  for (const unsigned threads : {0u, 2u}) {
    rig_.disk.fail_reads({at_[2].batch_sector * kBlockBytes, kBlockBytes});
    DiskScan scan = open(threads);
    EXPECT_EQ(tracks_text(scan), "1 2error");
    rig_.disk.fail_reads({});
  }
  rig_.disk.fail_reads({kListFirstBlock * kBlockBytes, kBlockBytes});
  const auto opened = DiskScan::open(rig_.disk, rig_.superblock, 0);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, ErrorCode::kIo);
}

TEST_F(DiskScanTest, ErasesWhereTheNextBatchGoesAndTheNextTracksBeginnings) {
  const std::uint64_t next = (at_[4].batch_sector + 1022) * kBlockBytes;
  const std::uint64_t next_track = kReservedBytes + 3 * kTrackBytes;
  const std::vector<std::byte> remains(3 * kBlockBytes, std::byte{0x5a});
  rig_.disk.overwrite(next, remains);
  rig_.disk.overwrite(next_track, remains);
  rig_.disk.overwrite(next_track + kTrackBytes, remains);
  DiskScan scan = open();
  EXPECT_EQ(tracks_text(scan), "1 2|3 4|5");
  ASSERT_TRUE(scan.erase_remains().has_value());
  rig_.disk.cut_power();
  rig_.disk.restore_power();
  std::vector<std::byte> expected = remains;
  std::fill_n(expected.begin(), kBlockBytes, std::byte{});
  EXPECT_EQ(rig_.disk.bytes({next, remains.size()}), expected);
  std::fill_n(expected.begin(), 2 * kBlockBytes, std::byte{});
  EXPECT_EQ(rig_.disk.bytes({next_track, remains.size()}), expected);
  EXPECT_EQ(rig_.disk.bytes({next_track + kTrackBytes, remains.size()}), expected);
}

TEST_F(DiskScanTest, WritesNothingWhereNothingRemains) {
  DiskScan scan = open();
  EXPECT_EQ(tracks_text(scan), "1 2|3 4|5");
  const std::size_t writes = rig_.disk.writes().size();
  ASSERT_TRUE(scan.erase_remains().has_value());
  EXPECT_EQ(rig_.disk.writes().size(), writes);
}

TEST(DiskScan, OfADiskThatRotatesTheWholeNextTrackIsErased) {
  ArrayRig rig({.disks = 1, .rotating = true});
  ASSERT_TRUE(rig.open());
  for (std::uint64_t i = 1; i <= 5; ++i) {
    rig.append(record_of(1, i, 2));
    rig.executor.run_until_idle();
  }
  const std::uint64_t current = rig.member(0).log_disk->current_allocation();
  const Superblock superblock = rig.superblocks[0];
  rig.close();
  const std::uint64_t next_track = superblock.track_first_sector(current) * 512;
  rig.disks[0]->overwrite(next_track + 100 * 512, std::vector<std::byte>(512, std::byte{1}));
  DiskScan scan = *DiskScan::open(*rig.disks[0], superblock, 0);
  EXPECT_EQ(tracks_text(scan), "1 2 3 4 5");
  EXPECT_EQ(scan.tail().next_sector, 0u);
  EXPECT_EQ(scan.tail().next_batch, 6u);
  ASSERT_TRUE(scan.erase_remains().has_value());
  EXPECT_EQ(rig.disks[0]->bytes({next_track, ArrayRig::kRotatingTrackBytes}),
            std::vector<std::byte>(ArrayRig::kRotatingTrackBytes));
}

}  // namespace
}  // namespace mariner::logging
