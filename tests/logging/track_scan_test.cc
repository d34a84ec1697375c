#include "logging/track_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/logging/log_testing.h"
#include "tests/support/watched_disk.h"

namespace mariner::logging {
namespace {

using test::area_of;
using test::FaultyDisk;
using test::kTrackBlocks;
using test::kTrackBytes;
using test::log_id;
using test::ManualExecutor;
using test::payload_of;
using test::record_of;

constexpr std::uint64_t kTrack = 1;
constexpr std::uint64_t kAllocation = 7;
constexpr std::uint64_t kFirst = kReservedBlocks + kTrack * kTrackBlocks + 1;

// Batches put on the medium by hand, in any order and with any numbers: what a writer never does.
class TrackScanTest : public ::testing::Test {
 protected:
  TrackScanTest() {
    superblock_.log = log_id();
    superblock_.track_sectors = kTrackBlocks;
    superblock_.track_count = 4;
    superblock_.first_sector = kReservedBlocks;
  }

  struct Given {
    std::uint64_t number = 0;
    std::uint64_t block = 0;
    std::uint32_t blocks = 1;  // of payload, in one record whose sequence is the batch's number
    std::uint64_t allocation = kAllocation;
    std::uint64_t claims_block = 0;  // 0: where it is
  };
  // Returns the block behind it.
  std::uint64_t put(const Given& given) {
    const Payload area =
        area_of({.batch_number = given.number,
                 .allocation = given.allocation,
                 .sector = given.claims_block == 0 ? given.block : given.claims_block,
                 .previous_sector = given.block - 1},
                {record_of(1, given.number, given.blocks)}, log_id());
    disk_.overwrite(given.block * kBlockBytes, area.bytes());
    const std::uint64_t payload = given.block + area.size() / kBlockBytes;
    disk_.overwrite(payload * kBlockBytes, payload_of(given.number, given.blocks).bytes());
    return payload + given.blocks;
  }

  TrackScan scan(bool is_last, std::uint64_t end_batch = 0, std::uint64_t first_batch = 10) {
    const Result<TrackScan> result = scan_track(
        disk_, superblock_,
        {.track = {kTrack, kAllocation, first_batch}, .is_last = is_last, .end_batch = end_batch});
    if (!result) {
      ADD_FAILURE() << to_string(result.error());
      return {};
    }
    return *result;
  }
  // "11..12|10 13": damage, then the records.
  static std::string text(const TrackScan& scan) {
    std::string text;
    for (const LogDamage& damage : scan.damage) {
      EXPECT_EQ(damage.track, kTrack);
      text += std::to_string(damage.first_batch) + ".." + std::to_string(damage.last_batch) + " ";
    }
    text += "|";
    for (const ScannedRecord& r : scan.records) {
      text += " " + std::to_string(r.record.sequence.value);
    }
    return text;
  }

  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = kReservedBytes + 4 * kTrackBytes}};
  Superblock superblock_;
};

TEST_F(TrackScanTest, AnEmptyTrackGoesOnBehindItsHeader) {
  const TrackScan found = scan(true);
  EXPECT_EQ(text(found), "|");
  EXPECT_EQ(found.next_batch, 10u);
  EXPECT_EQ(found.next_sector, kFirst);
  EXPECT_EQ(found.last_batch_sector, 0u);
}

TEST_F(TrackScanTest, FollowsBatchesWithoutGaps) {
  const std::uint64_t second = put({10, kFirst, 3});
  const std::uint64_t end = put({11, second, 1});
  const TrackScan found = scan(true);
  EXPECT_EQ(text(found), "| 10 11");
  EXPECT_EQ(found.batches, 2u);
  EXPECT_EQ(found.next_batch, 12u);
  EXPECT_EQ(found.next_sector, end);
  EXPECT_EQ(found.last_batch_sector, second);
  EXPECT_EQ(found.records[1].location.batch_sector, second);
  EXPECT_EQ(found.records[1].location.payload_offset, 1u);
}

// Header areas stand apart by the payloads between them, which nobody needs here.
TEST_F(TrackScanTest, ReadsNoPayloadsWhereTheyAreLarge) {
  std::uint64_t block = kFirst;
  for (std::uint64_t number = 10; number < 50; ++number) block = put({number, block, 32});
  mariner::test::WatchedDisk watched(disk_);
  const auto found =
      scan_track(watched, superblock_, {.track = {kTrack, kAllocation, 10}, .end_batch = 50});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->batches, 40u);
  EXPECT_LE(watched.reads().size(), 40u);
  EXPECT_LE(watched.bytes_read(), (40u + 16) * kBlockBytes);
}

TEST_F(TrackScanTest, ReadsManySmallBatchesAtOnce) {
  std::uint64_t block = kFirst;
  for (std::uint64_t number = 10; number < 510; ++number) block = put({number, block, 1});
  mariner::test::WatchedDisk watched(disk_);
  const auto found =
      scan_track(watched, superblock_, {.track = {kTrack, kAllocation, 10}, .end_batch = 510});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->batches, 500u);
  EXPECT_LE(watched.reads().size(), 10u) << "1,000 blocks, in pieces that grow to 256";
}

TEST_F(TrackScanTest, ReadsNoMoreAtOnceThanItIsTold) {
  std::uint64_t block = kFirst;
  for (std::uint64_t number = 10; number < 510; ++number) block = put({number, block, 1});
  mariner::test::WatchedDisk watched(disk_);
  const auto found = scan_track(
      watched, superblock_,
      {.track = {kTrack, kAllocation, 10}, .end_batch = 510, .read_bytes_max = 128u << 10});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->batches, 500u);
  std::uint64_t longest = 0;
  for (const ByteRange& read : watched.reads()) longest = std::max(longest, read.length);
  EXPECT_EQ(longest, 128u << 10);
}

// Large and small ones in turn: not more than a read for each batch, whatever their order.
TEST_F(TrackScanTest, ReadsAtMostOnceForEachBatch) {
  std::uint64_t block = kFirst;
  for (std::uint64_t number = 10; number < 110; ++number) {
    block = put({number, block, number % 3 == 0 ? 40u : 1u});
  }
  mariner::test::WatchedDisk watched(disk_);
  const auto found =
      scan_track(watched, superblock_, {.track = {kTrack, kAllocation, 10}, .end_batch = 110});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->batches, 100u);
  EXPECT_LE(watched.reads().size(), 100u);
}

TEST_F(TrackScanTest, LongHeaderAreasAreReadWhole) {
  std::vector<Record> records;
  for (std::uint64_t i = 0; i < 300; ++i) records.push_back(record_of(1, 1000 + i));
  std::uint64_t block = kFirst;
  for (std::uint64_t number = 10; number < 14; ++number) {
    const Payload area = area_of(
        {.batch_number = number, .allocation = kAllocation, .sector = block}, records, log_id());
    disk_.overwrite(block * kBlockBytes, area.bytes());
    block += area.size() / kBlockBytes + records.size();
  }
  mariner::test::WatchedDisk watched(disk_);
  const auto found =
      scan_track(watched, superblock_, {.track = {kTrack, kAllocation, 10}, .end_batch = 14});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->batches, 4u);
  EXPECT_LE(watched.reads().size(), 4u);
}

TEST_F(TrackScanTest, StopsAtTheFirstBatchOfTheNextTrack) {
  // What a disk error left behind: batch 11 is here too, and counts where it was written again.
  put({11, put({10, kFirst})});
  EXPECT_EQ(text(scan(false, 11)), "| 10");
  EXPECT_EQ(text(scan(false, 10)), "|");
}

TEST_F(TrackScanTest, ABatchOfAnEarlierUseOfTheTrackIsStale) {
  put({.number = 11, .block = put({10, kFirst}), .allocation = kAllocation - 1});
  const TrackScan found = scan(true);
  EXPECT_EQ(text(found), "| 10");
  EXPECT_EQ(found.next_batch, 11u);
  put({.number = 10, .block = kFirst, .allocation = kAllocation - 1});
  EXPECT_EQ(text(scan(true)), "|");
  EXPECT_EQ(text(scan(false, 12)), "10..11 |");
}

TEST_F(TrackScanTest, AStaleBatchBehindADamagedOneIsNoEvidence) {
  const std::uint64_t second = put({10, kFirst});
  const std::uint64_t third = put({11, second});
  put({.number = 12, .block = third, .allocation = kAllocation - 1});
  disk_.flip_bit(second * kBlockBytes + 70, 0);
  EXPECT_EQ(text(scan(true)), "| 10");
}

TEST_F(TrackScanTest, ABatchOfAnotherNumberIsNotTheNext) {
  const std::uint64_t second = put({10, kFirst});
  put({9, second});
  EXPECT_EQ(text(scan(true)), "| 10");
  put({13, second});
  EXPECT_EQ(text(scan(true)), "| 10") << "the same place, but nothing between says it is lost";
}

TEST_F(TrackScanTest, AMisdirectedBatchIsNotTaken) {
  const std::uint64_t second = put({10, kFirst});
  put({.number = 11, .block = second, .claims_block = second + 1});
  EXPECT_EQ(text(scan(true)), "| 10");
}

TEST_F(TrackScanTest, ABatchThatLeavesTheTrackIsNotTaken) {
  const std::uint64_t end = kReservedBlocks + (kTrack + 1) * kTrackBlocks;
  const std::uint64_t second = put({10, kFirst, 1024});
  const std::uint64_t third = put({11, second, 1000});
  put({12, third, static_cast<std::uint32_t>(end - third)});
  EXPECT_EQ(text(scan(true)), "| 10 11");
}

TEST_F(TrackScanTest, AFullTrackHasNoRoom) {
  const std::uint64_t end = kReservedBlocks + (kTrack + 1) * kTrackBlocks;
  const std::uint64_t second = put({10, kFirst, 1020});
  EXPECT_EQ(put({11, second, static_cast<std::uint32_t>(end - second - 2)}), end);
  const TrackScan found = scan(true);
  EXPECT_EQ(text(found), "| 10 11");
  EXPECT_EQ(found.next_sector, 0u);
  EXPECT_EQ(found.next_batch, 12u);
}

TEST_F(TrackScanTest, DamageInTheMiddleIsBoundedByTheNextWholeBatch) {
  const std::uint64_t second = put({10, kFirst});
  const std::uint64_t third = put({11, second, 300});
  put({12, third});
  disk_.flip_bit(second * kBlockBytes + 70, 0);
  EXPECT_EQ(text(scan(true)), "11..11 | 10 12");
  EXPECT_EQ(text(scan(false, 13)), "11..11 | 10 12");
  EXPECT_EQ(text(scan(false, 15)), "11..11 13..14 | 10 12");
}

TEST_F(TrackScanTest, ATrackThatIsNotTheLastHasNoTornTail) {
  put({10, kFirst, 2});
  disk_.flip_bit((kFirst + 1) * kBlockBytes, 0);
  EXPECT_EQ(text(scan(false, 11)), "| 10") << "its reader meets the damage";
  const TrackScan last = scan(true);
  EXPECT_EQ(text(last), "|");
  EXPECT_EQ(last.records_cut, 1u);
  EXPECT_EQ(last.next_sector, kFirst);
  EXPECT_EQ(last.last_batch_sector, kFirst - 1) << "the batch before it";
}

TEST_F(TrackScanTest, EverySectorMissingOfTheLastBatchCutsIt) {
  const std::uint64_t second = put({10, kFirst});
  const std::uint64_t end = put({11, second, 3});
  const auto whole = disk_.bytes({second * kBlockBytes, (end - second) * kBlockBytes});
  const std::vector<std::byte> zeros(512);
  for (std::size_t at = 0; at < whole.size(); at += 512) {
    if (at >= 512 && at < kBlockBytes) continue;  // the header area's unused sectors: zeros anyway
    disk_.overwrite(second * kBlockBytes, whole);
    disk_.overwrite(second * kBlockBytes + at, zeros);
    const TrackScan found = scan(true);
    ASSERT_EQ(text(found), "| 10") << "sector at " << at;
    ASSERT_EQ(found.next_sector, second);
    ASSERT_EQ(found.next_batch, 11u);
  }
  disk_.overwrite(second * kBlockBytes, whole);
  EXPECT_EQ(text(scan(true)), "| 10 11");
}

TEST_F(TrackScanTest, APayloadThatLooksLikeABatchIsNotOne) {
  // A guest that stores a copy of this very log: the copy's addresses are those of the original.
  const std::uint64_t second = put({10, kFirst, 4});
  const Payload copy = area_of({.batch_number = 12,
                                .allocation = kAllocation,
                                .sector = kFirst + 1000,
                                .previous_sector = kFirst},
                               {record_of(9, 99, 1, RecordType::kZero)}, log_id());
  disk_.overwrite((second + 1) * kBlockBytes, copy.bytes());
  EXPECT_EQ(text(scan(true)), "| 10");
}

TEST_F(TrackScanTest, FindsTheFirstWholeBatchBehindABlockAndANumber) {
  const std::uint64_t second = put({10, kFirst});
  const std::uint64_t third = put({11, second});
  put({12, third});
  const auto found = [&](std::uint64_t block, std::uint64_t after) {
    const auto batch = find_batch(disk_, superblock_, {kTrack, kAllocation, 0}, block, after);
    EXPECT_TRUE(batch.has_value());
    return batch && *batch ? (*batch)->batch_number : 0;
  };
  EXPECT_EQ(found(kFirst, 0), 10u);
  EXPECT_EQ(found(kFirst, 10), 11u);
  EXPECT_EQ(found(second + 1, 0), 12u);
  EXPECT_EQ(found(kFirst, 12), 0u);
  disk_.flip_bit(second * kBlockBytes + 70, 0);
  EXPECT_EQ(found(kFirst, 10), 12u);
}

TEST_F(TrackScanTest, AnUnreadableBlockIsAnError) {
  put({10, kFirst});
  disk_.fail_reads({kFirst * kBlockBytes, 512});
  const Result<TrackScan> result =
      scan_track(disk_, superblock_, {.track = {kTrack, kAllocation, 10}, .is_last = true});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace mariner::logging
