#include "logging/log_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "logging/log_reader.h"
#include "logging/recovery.h"
#include "logging/rotational_placement.h"
#include "proto/crc32c.h"
#include "proto/huge_pages.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::FaultyDisk;
using test::kTrackBlocks;
using test::kTrackBytes;
using test::log_id;
using test::ManualExecutor;
using test::payload_of;
using test::record_of;

constexpr std::uint64_t kFirst = kReservedBlocks + 1;  // behind the first track's header

PendingRecord pending(const Record& record) {
  PendingRecord out;
  out.record = record;
  if (record.payload_blocks == 0) return out;
  out.payload = test::whole(payload_of(record.sequence.value, record.payload_blocks));
  for (std::uint32_t i = 0; i < record.payload_blocks; ++i) {
    out.block_crcs.push_back(
        crc32c(out.payload.bytes().subspan(std::size_t{i} * kBlockBytes, kBlockBytes)));
  }
  return out;
}

// Records of `blocks` blocks, without their bytes: for what only counts them.
std::deque<PendingRecord> queue_of(std::size_t count, std::uint32_t blocks) {
  std::deque<PendingRecord> queue(count);
  for (std::size_t i = 0; i < count; ++i) {
    queue[i].record =
        record_of(1, i + 1, blocks, blocks == 0 ? RecordType::kZero : RecordType::kWrite);
  }
  return queue;
}

Superblock superblock_of(std::uint32_t sector_bytes, std::uint64_t track_bytes,
                         std::chrono::nanoseconds rotation = 0ns) {
  Superblock out;
  out.log = log_id();
  out.disk = 3;
  out.sector_bytes = sector_bytes;
  out.track_sectors = static_cast<std::uint32_t>(track_bytes / sector_bytes);
  out.track_count = 6;
  out.list_blocks = list_blocks_for(out.track_count);
  out.first_sector = kReservedBytes / sector_bytes;
  out.rotation = rotation;
  return out;
}

// Of a batch that begins its track, on a disk with sectors of 4 KiB.
ConstBytes track_header(const LogBatch& batch) { return batch.parts.front().first(kBlockBytes); }

// Of one that does not.
ConstBytes area(const LogBatch& batch) {
  return batch.parts.front().first(std::size_t{batch.header.header_sectors} * kBlockBytes);
}

std::unique_ptr<Placement> rotational(std::chrono::nanoseconds rotation) {
  return std::make_unique<RotationalPlacement>(
      RotationalPlacement::Options{.rotation = rotation, .t_idle = 0ns});
}

// A disk that appends, and batches that go to it at once.
class LogDiskTest : public ::testing::Test {
 protected:
  LogBatch build(const std::vector<Record>& records, std::uint64_t ordinal_frontier = 1) {
    LogBatch batch;
    for (const Record& record : records) batch.records.push_back(pending(record));
    log_disk_.build(batch, ordinal_frontier, 0ns);
    return batch;
  }
  // The same, and it is durable.
  LogBatch put(const std::vector<Record>& records) {
    LogBatch batch = build(records);
    log_disk_.placement().completed(batch.sectors, 1us);
    return batch;
  }
  static std::pair<std::uint64_t, int> back(const LogBatch& batch, std::size_t slot) {
    const Record& record = batch.records[slot].record;
    return {record.previous_sector, record.previous_slot};
  }

  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = kReservedBytes + 6 * kTrackBytes}};
  const Superblock superblock_ = superblock_of(kBlockBytes, kTrackBytes);
  TrackList tracks_{superblock_};
  LogDisk log_disk_{{disk_, superblock_, tracks_}, DiskTail{.allocation = 0}};
};

TEST_F(LogDiskTest, BatchesFollowTheirTracksHeaderWithoutGaps) {
  EXPECT_EQ(log_disk_.next_track(), 0u);
  EXPECT_EQ(log_disk_.free_tracks(), 6u);
  log_disk_.take_track(0ns);
  EXPECT_EQ(log_disk_.free_tracks(), 5u);
  EXPECT_EQ(log_disk_.next_track(), 1u);
  const LogBatch first = put({record_of(1, 1, 2), record_of(2, 1, 3)});
  EXPECT_EQ(first.sectors, (SectorRange{kFirst, 6}));
  const auto header = unpack_track_header(track_header(first), superblock_.log, 0);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(*header, (TrackHeader{.track = 0, .allocation = 1, .first_batch = 1}));
  EXPECT_EQ(first.records[0].location, (LogLocation{kFirst, 1, 0, 1, 3}));
  EXPECT_EQ(first.records[1].location, (LogLocation{kFirst, 3, 1, 1, 3}));
  const LogBatch second = put({record_of(1, 2, 1)});
  EXPECT_EQ(second.sectors, (SectorRange{kFirst + 6, 2}));
  EXPECT_EQ(first.first_sector, first.sectors.first - 1);
  EXPECT_EQ(second.first_sector, second.sectors.first) << "only the first has it";
}

TEST_F(LogDiskTest, ABatchSaysWhereItBelongs) {
  log_disk_.take_track(0ns);
  put({record_of(1, 1, 1)});
  log_disk_.leave_track(0ns);
  log_disk_.take_track(0ns);
  put({record_of(1, 2, 1)});
  const LogBatch batch = build({record_of(1, 3, 4), record_of(1, 4, 1, RecordType::kZero)}, 77);
  const auto parsed =
      parse_batch(area(batch), superblock_.batch_format(), kReservedBlocks + kTrackBlocks + 3);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->header, batch.header);
  EXPECT_EQ(batch.header, (BatchHeader{.record_count = 2,
                                       .header_sectors = 1,
                                       .total_sectors = 5,
                                       .batch_number = 3,
                                       .allocation = 2,
                                       .sector = kReservedBlocks + kTrackBlocks + 3,
                                       .previous_sector = kReservedBlocks + kTrackBlocks + 1,
                                       .ordinal_frontier = 77,
                                       .track_first_batch = 2}));
  EXPECT_EQ(parsed->records[1].record, batch.records[1].record);
}

// Small payloads lie behind the headers in one piece of memory, large ones where they were.
TEST_F(LogDiskTest, WhatIsWrittenIsInFewParts) {
  log_disk_.take_track(0ns);
  const LogBatch batch =
      build({record_of(1, 1, 1), record_of(1, 2, 8), record_of(1, 3, 64), record_of(1, 4, 65),
             record_of(1, 5, 2), record_of(1, 6, 1, RecordType::kZero), record_of(1, 7, 3)});
  ASSERT_EQ(batch.parts.size(), 4u);
  EXPECT_EQ(batch.parts[0].size(), (2 + 1 + 8) * std::size_t{kBlockBytes}) << "headers, 1, 2";
  EXPECT_EQ(batch.parts[1].data(), batch.records[2].payload.bytes().data());
  EXPECT_EQ(batch.parts[2].data(), batch.records[3].payload.bytes().data());
  EXPECT_EQ(batch.parts[3].data(), batch.parts[0].data() + batch.parts[0].size());
  std::vector<std::byte> written;
  for (const ConstBytes& part : batch.parts)
    written.insert(written.end(), part.begin(), part.end());
  ASSERT_EQ(written.size(), (batch.sectors.count + 1) * std::size_t{kBlockBytes});
  std::size_t at = 2 * std::size_t{kBlockBytes};
  for (const PendingRecord& pending : batch.records) {
    const ConstBytes payload = pending.payload.bytes();
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(),
                           written.begin() + static_cast<std::ptrdiff_t>(at)));
    at += payload.size();
  }
  EXPECT_EQ(at, written.size());
}

// Beyond a huge page nothing is copied: it would not lie together.
TEST_F(LogDiskTest, NoMoreIsGatheredThanAHugePageHolds) {
  log_disk_.take_track(0ns);
  std::vector<Record> records;
  for (std::uint64_t i = 0; i < 80; ++i) records.push_back(record_of(1, i + 1, 8));
  const LogBatch batch = build(records);
  std::uint64_t bytes = 0;
  for (const ConstBytes& part : batch.parts) bytes += part.size();
  EXPECT_EQ(bytes, (batch.sectors.count + 1) * std::uint64_t{kBlockBytes});
  EXPECT_LE(batch.gathered.size(), kHugePageBytes);
  EXPECT_GT(batch.gathered.size(), kHugePageBytes - 9 * kBlockBytes);
  EXPECT_GT(batch.parts.size(), 1u);
}

TEST_F(LogDiskTest, EachRecordPointsBackToTheOneBeforeOfItsVolume) {
  log_disk_.take_track(0ns);
  const LogBatch first = put({record_of(1, 1), record_of(2, 1), record_of(1, 2)});
  EXPECT_EQ(back(first, 0), std::pair(std::uint64_t{0}, 0));
  EXPECT_EQ(back(first, 1), std::pair(std::uint64_t{0}, 0));
  EXPECT_EQ(back(first, 2), std::pair(kFirst, 0));
  const LogBatch second = put({record_of(2, 2), record_of(1, 3)});
  EXPECT_EQ(back(second, 0), std::pair(kFirst, 1));
  EXPECT_EQ(back(second, 1), std::pair(kFirst, 2));
}

TEST_F(LogDiskTest, ABatchTakenBackLeavesNoTraceButItsTrack) {
  log_disk_.take_track(0ns);
  const LogBatch first = put({record_of(1, 1), record_of(2, 1)});
  const std::vector<Record> failing{record_of(2, 2), record_of(3, 1), record_of(2, 3)};
  const LogBatch failed = build(failing);
  EXPECT_EQ(back(failed, 2), std::pair(failed.sectors.first, 0));
  log_disk_.placement().completed(failed.sectors, 1us);
  log_disk_.take_back(failed, 1us);
  EXPECT_EQ(log_disk_.placement().room(), 0u) << "the place may be bad";
  log_disk_.take_track(1us);
  const LogBatch again = build({record_of(2, 2), record_of(3, 1), record_of(1, 2)});
  EXPECT_EQ(again.header.batch_number, failed.header.batch_number);
  EXPECT_EQ(again.header.previous_sector, first.sectors.first);
  EXPECT_EQ(again.header.allocation, 2u);
  EXPECT_EQ(again.header.track_first_batch, failed.header.batch_number);
  EXPECT_EQ(back(again, 0), std::pair(first.sectors.first, 1));
  EXPECT_EQ(back(again, 1), std::pair(std::uint64_t{0}, 0)) << "none was ever durable";
  EXPECT_EQ(back(again, 2), std::pair(first.sectors.first, 0));
  const auto header = unpack_track_header(track_header(again), superblock_.log, 1);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->first_batch, failed.header.batch_number);
}

TEST_F(LogDiskTest, TheFirstBatchOfATrackCanBeTakenBackToo) {
  log_disk_.take_track(0ns);
  const LogBatch failed = build({record_of(1, 1)});
  log_disk_.placement().completed(failed.sectors, 1us);
  log_disk_.take_back(failed, 1us);
  log_disk_.take_track(1us);
  const LogBatch again = build({record_of(1, 1)});
  EXPECT_EQ(again.header.batch_number, 1u);
  EXPECT_EQ(again.header.previous_sector, 0u);
  EXPECT_EQ(again.sectors.first, kFirst + kTrackBlocks);
  EXPECT_EQ(back(again, 0), std::pair(std::uint64_t{0}, 0));
}

// Behind three unused tracks recovery would not look for a fourth.
TEST_F(LogDiskTest, ATrackThatNothingWasWrittenToIsNotLeft) {
  log_disk_.take_track(0ns);
  log_disk_.leave_track(0ns);
  EXPECT_EQ(put({record_of(1, 1)}).header.allocation, 1u);
  log_disk_.leave_track(0ns);
  EXPECT_EQ(log_disk_.placement().room(), 0u);
}

TEST_F(LogDiskTest, GoesOnAtTheTailThatWasFound) {
  DiskTail tail;
  tail.allocation = 2;
  tail.next_sector = kReservedBlocks + kTrackBlocks + 100;
  tail.next_batch = 42;
  tail.previous_batch_sector = tail.next_sector - 7;
  tail.track_first_batch = 30;
  tail.last_records[VolumeId{1}] = {kFirst, 5};
  LogDisk log_disk({disk_, superblock_, tracks_}, tail);
  EXPECT_EQ(log_disk.free_tracks(), 4u);
  EXPECT_EQ(log_disk.placement().room(), kTrackBlocks - 100u);
  LogBatch batch;
  batch.records.push_back(pending(record_of(1, 9)));
  log_disk.build(batch, 1, 0ns);
  EXPECT_EQ(batch.sectors.first, tail.next_sector);
  EXPECT_EQ(batch.first_sector, batch.sectors.first) << "no header before it";
  EXPECT_EQ(batch.header.batch_number, 42u);
  EXPECT_EQ(batch.header.previous_sector, tail.previous_batch_sector);
  EXPECT_EQ(batch.header.track_first_batch, 30u);
  EXPECT_EQ(back(batch, 0), std::pair(kFirst, 5));
}

TEST_F(LogDiskTest, ATailWithoutPlaceNeedsATrack) {
  LogDisk log_disk({disk_, superblock_, tracks_}, DiskTail{.allocation = 2, .next_batch = 42});
  EXPECT_EQ(log_disk.placement().room(), 0u);
  EXPECT_EQ(log_disk.batch_length(queue_of(1, 1), 1u << 20, 0ns), 0u);
  EXPECT_EQ(log_disk.next_track(), 2u);
}

TEST_F(LogDiskTest, CountsWhatItUses) {
  EXPECT_EQ(log_disk_.used_bytes(), 0u);
  EXPECT_EQ(log_disk_.limit_bytes(), 6 * kTrackBytes);
  EXPECT_EQ(log_disk_.next_fresh_track(), 0u);
  log_disk_.take_track(0ns);
  EXPECT_EQ(log_disk_.used_bytes(), kBlockBytes) << "the header";
  EXPECT_EQ(log_disk_.next_fresh_track(), 1u);
  put({record_of(1, 1, 3)});
  EXPECT_EQ(log_disk_.used_bytes(), 5u * kBlockBytes);
  log_disk_.leave_track(0ns);
  EXPECT_EQ(log_disk_.used_bytes(), kTrackBytes) << "nothing else goes there";
  log_disk_.take_track(0ns);
  put({record_of(1, 2, 1)});
  EXPECT_EQ(log_disk_.used_bytes(), kTrackBytes + 3 * kBlockBytes);
  static_cast<void>(tracks_.release(2));
  tracks_.committed();
  EXPECT_EQ(log_disk_.used_bytes(), 3u * kBlockBytes);
  EXPECT_EQ(log_disk_.free_tracks(), 5u);
  // The same, as the next start counts it.
  DiskTail tail{.allocation = 2, .next_sector = kReservedBlocks + kTrackBlocks + 3};
  EXPECT_EQ(LogDisk({disk_, superblock_, tracks_}, tail).used_bytes(), 3u * kBlockBytes);
}

TEST_F(LogDiskTest, AFinishedDisksLastTrackIsComplete) {
  EXPECT_EQ(log_disk_.current_allocation(), 0u);
  log_disk_.take_track(0ns);
  put({record_of(1, 1, 3)});
  EXPECT_EQ(log_disk_.current_allocation(), 1u);
  EXPECT_FALSE(log_disk_.finished());
  log_disk_.finish();
  EXPECT_TRUE(log_disk_.finished());
  EXPECT_EQ(log_disk_.current_allocation(), 2u);
  static_cast<void>(tracks_.release(log_disk_.current_allocation()));
  tracks_.committed();
  EXPECT_EQ(log_disk_.used_bytes(), 0u);
}

TEST_F(LogDiskTest, ABatchTakesNoMoreThanTheTrackHasRoomFor) {
  const std::uint32_t any = UINT32_MAX;
  EXPECT_EQ(log_disk_.batch_length(queue_of(3, 1), any, 0ns), 0u) << "there is no track";
  log_disk_.take_track(0ns);
  // 2,047 blocks behind the track's header; each record takes 10 and 152 bytes.
  EXPECT_EQ(log_disk_.batch_length(queue_of(300, 10), any, 0ns), 203u);
  put({record_of(1, 1, 1024)});
  put({record_of(1, 2, 1000)});  // 2,048 - 1 - 1,026 - 1,002 = 19 are left
  EXPECT_EQ(log_disk_.placement().room(), 19u);
  EXPECT_EQ(log_disk_.batch_length(queue_of(2, 9), any, 0ns), 2u);
  EXPECT_EQ(log_disk_.batch_length(queue_of(3, 9), any, 0ns), 2u);
  EXPECT_EQ(log_disk_.batch_length(queue_of(2, 10), any, 0ns), 1u);
  EXPECT_EQ(log_disk_.batch_length(queue_of(1, 18), any, 0ns), 1u);
  EXPECT_EQ(log_disk_.batch_length(queue_of(1, 19), any, 0ns), 0u);
  EXPECT_EQ(log_disk_.batch_length({}, any, 0ns), 0u);
}

TEST_F(LogDiskTest, ABatchIsBoundedInBytesButForOneRecord) {
  log_disk_.take_track(0ns);
  // A block of headers and five of payload each.
  EXPECT_EQ(log_disk_.batch_length(queue_of(9, 5), 16 * kBlockBytes, 0ns), 3u);
  EXPECT_EQ(log_disk_.batch_length(queue_of(9, 5), 16 * kBlockBytes - 1, 0ns), 2u);
  EXPECT_EQ(log_disk_.batch_length(queue_of(9, 5), 1, 0ns), 1u);
  EXPECT_EQ(log_disk_.batch_length(queue_of(1, 1024), 1, 0ns), 1u);
}

TEST_F(LogDiskTest, ABatchIsBoundedInRecords) {
  log_disk_.take_track(0ns);
  EXPECT_EQ(log_disk_.batch_length(queue_of(kBatchRecordsMax, 0), UINT32_MAX, 0ns),
            kBatchRecordsMax);
  EXPECT_EQ(log_disk_.batch_length(queue_of(kBatchRecordsMax + 1, 0), UINT32_MAX, 0ns),
            kBatchRecordsMax);
}

// 80 bytes of the batch and 4,208 of each record: 64 blocks hold 62, 255 sectors of 512 hold 31.
TEST_F(LogDiskTest, ABatchIsBoundedInItsHeaderArea) {
  for (const auto& [sector_bytes, length] : {std::pair(4096u, 62u), std::pair(512u, 31u)}) {
    const Superblock superblock = superblock_of(sector_bytes, 512u << 20);
    const TrackList tracks(superblock);
    LogDisk log_disk({disk_, superblock, tracks}, {});
    log_disk.take_track(0ns);
    EXPECT_EQ(log_disk.batch_length(queue_of(length, 1024), UINT32_MAX, 0ns), length);
    EXPECT_EQ(log_disk.batch_length(queue_of(length + 1, 1024), UINT32_MAX, 0ns), length);
  }
}

TEST_F(LogDiskTest, TheLongestRecordJustFitsIntoAnEmptyTrack) {
  // Tracks that are not whole blocks, as a drive has them.
  for (std::uint32_t sectors = 128; sectors < 128 + 8 * 3; ++sectors) {
    const Superblock superblock = superblock_of(512, 512 * sectors, 8ms);
    const TrackList tracks(superblock);
    LogDisk log_disk({disk_, superblock, tracks}, {}, rotational(8ms));
    log_disk.take_track(0ns);
    std::uint32_t longest = 0;
    for (std::uint32_t blocks = 1; blocks < 30; ++blocks) {
      const auto queue = queue_of(1, blocks);
      const bool fits = log_disk.batch_length(queue, UINT32_MAX, 0ns) == 1;
      EXPECT_EQ(queue[0].batch_bytes() <= log_disk.record_bytes_max(), fits)
          << blocks << " blocks in " << sectors << " sectors";
      if (fits) longest = blocks;
    }
    EXPECT_GE(longest, 15u);
  }
  EXPECT_GE(log_disk_.record_bytes_max(), queue_of(1, kRecordPayloadBlocksMax)[0].batch_bytes());
}

// A disk that rotates, in sectors of 512 bytes: each batch goes where the head is about to be.
class RotatingLogDiskTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kTrack = 256u << 10;
  static constexpr auto kRotation = 8ms;

  RotatingLogDiskTest() {
    LogShape shape;
    shape.log = log_id();
    shape.track_bytes = kTrack;
    shape.sector_bytes = 512;
    shape.first_sector = kReservedBytes / 512 + 3;  // not at a block's beginning
    shape.tracks = 6;
    shape.rotation = kRotation;
    superblock_ = *format_log_disk(disk_, shape);
    tracks_.emplace(superblock_);
    disks_.add(0, {LogDisks::not_owned(disk_), superblock_.batch_format()});
  }

  void write(const LogBatch& batch) {
    EXPECT_EQ(batch.first_sector, batch.sectors.first) << "no track header";
    ASSERT_TRUE(
        disk_.write(batch.first_sector * 512, batch.parts, Durability::kDurable).has_value());
  }

  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = kReservedBytes + 7 * kTrack, .alignment = 512}};
  Superblock superblock_;
  std::optional<TrackList> tracks_;
  LogDisks disks_;
};

TEST_F(RotatingLogDiskTest, BatchesAreScatteredAndEveryRecordCanBeRead) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    disk_.overwrite(superblock_.first_sector * 512, std::vector<std::byte>(6 * kTrack));
    LogDisk log_disk({disk_, superblock_, *tracks_}, {}, rotational(kRotation));
    std::vector<PendingRecord> written;
    std::vector<SectorRange> places;
    std::chrono::nanoseconds now{0};
    std::uint64_t sequence = 0;
    bool descends = false;
    while (log_disk.free_tracks() > 1) {
      now += std::chrono::microseconds(random() % 20'000);
      std::deque<PendingRecord> queue;
      for (std::uint64_t i = 1 + random() % 4; i > 0; --i) {
        queue.push_back(
            pending(record_of(1, ++sequence, static_cast<std::uint32_t>(1 + random() % 6),
                              random() % 4 == 0 ? RecordType::kZero : RecordType::kWrite)));
      }
      const auto length = static_cast<std::ptrdiff_t>(log_disk.batch_length(queue, 1u << 20, now));
      if (length == 0) {
        log_disk.take_track(now);
        sequence -= queue.size();
        continue;
      }
      sequence -= queue.size() - static_cast<std::uint64_t>(length);
      LogBatch batch;
      batch.records.assign(std::make_move_iterator(queue.begin()),
                           std::make_move_iterator(queue.begin() + length));
      for (PendingRecord& p : batch.records) p.record.ordinal = p.record.sequence.value;
      log_disk.build(batch, batch.records.front().record.ordinal, now);
      write(batch);
      now += 3ms;
      log_disk.placement().completed(batch.sectors, now);
      for (const SectorRange& place : places) {
        ASSERT_TRUE(place.end() <= batch.sectors.first || batch.sectors.end() <= place.first);
      }
      ASSERT_TRUE(superblock_.track(log_disk.current_allocation() - 1).contains(batch.sectors));
      descends = descends || (!places.empty() && batch.sectors.first < places.back().first);
      places.push_back(batch.sectors);
      std::ranges::move(batch.records, std::back_inserter(written));
    }
    EXPECT_TRUE(descends) << "the head came round again";
    for (const PendingRecord& p : written) {
      if (p.record.payload_blocks == 0) continue;
      Payload to = Payload::allocate(std::size_t{p.record.payload_blocks} * kBlockBytes);
      ASSERT_TRUE(
          read_log_blocking(disks_, {p.location, p.record.volume, p.record.sequence, 0, to.bytes()})
              .has_value());
      ASSERT_TRUE(std::ranges::equal(to.bytes(), p.payload.bytes()));
    }
    // And found again, all of them, in their order.
    std::size_t found = 0;
    const LogDiskRef ref{disk_, superblock_};
    const auto recovered =
        recover_log({&ref, 1}, 0, [&](const Record& record, const LogLocation& at) {
          ASSERT_LT(found, written.size());
          EXPECT_EQ(record, written[found].record);
          EXPECT_EQ(at, written[found].location);
          ++found;
        });
    ASSERT_TRUE(recovered.has_value());
    EXPECT_EQ(found, written.size());
    EXPECT_TRUE(recovered->damage.empty());
    EXPECT_EQ(recovered->disks[0].tail.next_sector, 0u) << "in a new track";
    EXPECT_EQ(recovered->disks[0].tail.next_batch, places.size() + 1);
  }
}

TEST_F(RotatingLogDiskTest, CountsTheSectorsOfItsBatches) {
  LogDisk log_disk({disk_, superblock_, *tracks_}, {}, rotational(kRotation));
  log_disk.take_track(0ns);
  EXPECT_EQ(log_disk.used_bytes(), 0u) << "a track has no header of its own";
  LogBatch batch;
  batch.records.push_back(pending(record_of(1, 1, 2)));
  log_disk.build(batch, 1, 0ns);
  EXPECT_EQ(log_disk.used_bytes(), 17u * 512);
  EXPECT_EQ(batch.records[0].location.payload_offset, 1u);
}

using LogDiskDeathTest = LogDiskTest;

TEST_F(LogDiskDeathTest, ADiskThatRotatesNeedsToKnowHow) {
  const Superblock superblock = superblock_of(512, 256u << 10, 8ms);
  const TrackList tracks(superblock);
  EXPECT_DEATH(LogDisk({disk_, superblock, tracks}, {}), "");
}

}  // namespace
}  // namespace mariner::logging
