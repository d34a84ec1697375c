#include "tests/bench/made_log.h"

#include <gtest/gtest.h>

#include <cmath>

#include "logging/log_reader.h"
#include "logging/recovery.h"
#include "proto/payload.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"
#include "tests/support/watched_disk.h"

namespace mariner::bench {
namespace {

using mariner::test::FaultyDisk;
using mariner::test::ManualExecutor;

constexpr MadeLog kSmall{.records = 3000, .track_bytes = logging::kTrackBytesMin};

class MadeLogTest : public testing::Test {
 protected:
  ManualExecutor executor_;
};

TEST_F(MadeLogTest, MayBeginWhereAnIndexEnds) {
  MadeLog log = kSmall;
  log.first = 5'000'001;
  FaultyDisk disk(executor_, {.size_bytes = log.disk_bytes()});
  const auto superblock = make_log(disk, log);
  ASSERT_TRUE(superblock);
  std::uint64_t last = log.first - 1;
  const logging::LogDiskRef ref{disk, *superblock};
  const auto recovered = logging::recover_log(
      {&ref, 1}, 0, [&](const logging::Record& record, const logging::LogLocation&) {
        EXPECT_EQ(record.ordinal, ++last);
        EXPECT_EQ(record.sequence.value, last);
      });
  ASSERT_TRUE(recovered);
  EXPECT_EQ(recovered->records, log.records);
  EXPECT_EQ(last, log.first + log.records - 1);
  EXPECT_TRUE(recovered->damage.empty());
}

TEST_F(MadeLogTest, IsWhatAWriterWouldHaveLeft) {
  FaultyDisk disk(executor_, {.size_bytes = kSmall.disk_bytes()});
  const auto superblock = make_log(disk, kSmall);
  ASSERT_TRUE(superblock);
  test::WatchedDisk counted(disk);
  std::uint64_t sequence = 0;
  const logging::LogDiskRef ref{counted, *superblock};
  const logging::LogDisks disks(disk, superblock->batch_format());
  const auto recovered = logging::recover_log(
      {&ref, 1}, 0, [&](const logging::Record& record, const logging::LogLocation& location) {
        EXPECT_EQ(record.sequence.value, ++sequence);
        if (sequence % 100 != 0) return;
        Payload to = Payload::allocate(kBlockBytes);
        EXPECT_TRUE(logging::read_log_blocking(
            disks, {location, record.volume, record.sequence, 0, to.bytes()}));
      });
  ASSERT_TRUE(recovered);
  EXPECT_EQ(sequence, kSmall.records);
  EXPECT_EQ(recovered->batches, (kSmall.records + 31) / 32);
  EXPECT_TRUE(recovered->damage.empty());
  EXPECT_EQ(recovered->tail_records_cut, 0u);
  EXPECT_EQ(recovered->disks[0].tail.allocation, 2u);
  EXPECT_GT(counted.reads().size(), 0u);
  EXPECT_GE(counted.bytes_read(), counted.reads().size() * kBlockBytes);
}

TEST_F(MadeLogTest, ADiskWithoutRoomIsRefused) {
  FaultyDisk disk(executor_, {.size_bytes = kSmall.disk_bytes()});
  MadeLog more = kSmall;
  more.records = 100'000;
  const auto refused = make_log(disk, more);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNoSpace);
}

TEST_F(MadeLogTest, AHeaderDiskHasAsManyTracksTakenAsItIsTold) {
  const logging::Superblock superblock = superblock_of(1000);
  const logging::TrackList tracks(superblock);
  for (const std::uint64_t taken : {0, 1, 2, 499, 500, 501, 997, 999, 1000}) {
    HeaderDisk disk(superblock, taken);
    const auto end = logging::find_taken_end(disk, superblock, tracks);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->end, taken + 1);
    EXPECT_GT(end->track_reads, 0u);
  }
}

// What the benchmark's goal is about, at the levels where the search looks at most tracks.
TEST_F(MadeLogTest, TheYoungestOfAMillionTracksIsFoundWithinThreeReadsForEachHalving) {
  constexpr std::uint64_t kTracks = 1'000'000;
  const logging::Superblock superblock = superblock_of(kTracks);
  const logging::TrackList tracks(superblock);
  for (const std::uint64_t taken : {0u, 1u, 2u, 3u, 4u, 62'500u, 500'000u, 999'999u, 1'000'000u}) {
    HeaderDisk disk(superblock, taken);
    const auto end = logging::find_taken_end(disk, superblock, tracks);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->end, taken + 1);
    EXPECT_LE(static_cast<double>(end->track_reads), 3 * std::log2(kTracks)) << taken;
  }
}

}  // namespace
}  // namespace mariner::bench
