#include "logging/recovery.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::damage_text;
using test::FaultyDisk;
using test::kTrackBlocks;
using test::kTrackBytes;
using test::LogRig;
using test::record_of;
using test::sequences_text;

std::uint64_t byte_of_track(std::uint64_t track) { return kReservedBytes + track * kTrackBytes; }

// Damage, then the sequence numbers, of the log as it is found now. Each is read and verified.
std::string recovered(LogRig& rig, unsigned threads = 0) {
  rig.close();
  if (!rig.open(threads)) return "failed";
  for (const test::Visited& v : rig.visited) {
    EXPECT_TRUE(rig.verify(v.record, v.location).has_value());
  }
  return damage_text(rig.recovered) + "|" + sequences_text(rig.visited);
}

// A log of `tracks` tracks with two records of 1,020 blocks in each but for the last, which has
// one.
std::vector<LogLocation> fill_tracks(LogRig& rig, std::uint64_t tracks) {
  EXPECT_TRUE(rig.open());
  return rig.append_batches(1, 2 * tracks - 1, 1020);
}

TEST(Recovery, AFreshLogIsEmpty) {
  LogRig rig;
  EXPECT_EQ(recovered(rig), "|");
  EXPECT_EQ(rig.recovered.disks[0].tail.allocation, 0u);
  EXPECT_EQ(rig.recovered.disks[0].tail.next_batch, 1u);
  EXPECT_EQ(rig.recovered.disks[0].tail.next_sector, 0u);
}

TEST(Recovery, ALogGoesOnWhereItEnded) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  for (std::uint64_t round = 0; round < 5; ++round) {
    rig.append_batches(1 + 3 * round, 3, 400);
    rig.close();
    ASSERT_TRUE(rig.open());
  }
  EXPECT_EQ(recovered(rig), "|1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
  EXPECT_EQ(rig.recovered.batches, 15u);
  EXPECT_EQ(rig.recovered.records, 15u);
  EXPECT_EQ(rig.recovered.disks[0].tail.next_batch, 16u);
}

TEST(Recovery, SeveralThreadsFindTheSameInTheSameOrder) {
  LogRig rig({.tracks = 9});
  fill_tracks(rig, 7);
  const std::string alone = recovered(rig);
  EXPECT_EQ(alone, "|1 2 3 4 5 6 7 8 9 10 11 12 13");
  EXPECT_EQ(recovered(rig, 1), alone);
  EXPECT_EQ(recovered(rig, 4), alone);
}

TEST(Recovery, AnotherLogsTracksAreForeign) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_batches(1, 3);
  rig.close();
  ASSERT_TRUE(format_log(rig.disk, test::log_id(0x77), 0, kTrackBytes, 2).has_value());
  EXPECT_EQ(recovered(rig), "|");
  rig.append_batches(50, 1);
  EXPECT_EQ(recovered(rig), "|50");
}

TEST(Recovery, TheTornLastBatchIsCutWhole) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_batches(1, 2);
  rig.append(record_of(1, 3, 1));
  rig.append(record_of(1, 4, 3));
  rig.append(record_of(1, 5, 1));
  rig.executor.run_until_idle();
  const LogLocation second = *rig.outcomes[1].result;
  rig.close();
  rig.disk.flip_bit((second.payload_sector() + 2) * kBlockBytes, 0);
  EXPECT_EQ(recovered(rig), "|1 2");
  EXPECT_EQ(rig.recovered.tail_records_cut, 3u);
  EXPECT_EQ(rig.recovered.disks[0].tail.next_sector, second.batch_sector);
  EXPECT_EQ(rig.recovered.disks[0].tail.next_batch, 3u);
  rig.append_batches(6, 1);
  EXPECT_EQ(recovered(rig), "|1 2 6");
  EXPECT_EQ(rig.visited[2].location.batch_sector, second.batch_sector);
  EXPECT_EQ(rig.visited[2].record.previous_sector, rig.visited[1].location.batch_sector);
}

TEST(Recovery, TheTornOnlyBatchLeavesAnEmptyTrackThatGoesOn) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  const auto at = rig.append_batches(1, 1);
  rig.disk.flip_bit(at[0].payload_sector() * kBlockBytes, 0);
  EXPECT_EQ(recovered(rig), "|");
  EXPECT_EQ(rig.recovered.disks[0].tail.next_sector, at[0].batch_sector);
  EXPECT_EQ(rig.recovered.disks[0].tail.previous_batch_sector, 0u);
  rig.append_batches(2, 1);
  EXPECT_EQ(recovered(rig), "|2");
}

TEST(Recovery, ADamagedHeaderInTheMiddleIsARangeOfBatches) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  const auto at = rig.append_batches(1, 6, 2);
  rig.disk.flip_bit(at[2].batch_sector * kBlockBytes + 70, 1);
  rig.disk.flip_bit(at[3].batch_sector * kBlockBytes + 70, 1);
  EXPECT_EQ(recovered(rig), "track 0: 3..4|1 2 5 6");
  EXPECT_EQ(rig.recovered.batches, 4u);
  rig.append_batches(7, 1);
  EXPECT_EQ(recovered(rig), "track 0: 3..4|1 2 5 6 7");
}

TEST(Recovery, ADamagedPayloadInTheMiddleIsLeftToItsReader) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  const auto at = rig.append_batches(1, 3, 2);
  rig.disk.flip_bit(at[1].payload_sector() * kBlockBytes, 1);
  rig.close();
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(sequences_text(rig.visited), "1 2 3");
  const Result<void> read = rig.verify(record_of(1, 2, 2), rig.visited[1].location);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(rig.verify(record_of(1, 1, 2), rig.visited[0].location).has_value());
}

TEST(Recovery, TheDamagedEndOfATrackIsKnownFromTheNext) {
  LogRig rig;
  const auto at = fill_tracks(rig, 3);
  rig.disk.flip_bit(at[1].batch_sector * kBlockBytes, 0);
  EXPECT_EQ(recovered(rig), "track 0: 2..2|1 3 4 5");
}

TEST(Recovery, AWriteLostInTheMiddleIsReported) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_batches(1, 2);
  rig.disk.drop_next_write();
  rig.append_batches(3, 1);
  rig.append_batches(4, 2);
  EXPECT_EQ(recovered(rig), "track 0: 3..3|1 2 4 5");
}

TEST(Recovery, AMisdirectedWriteDamagesTwoPlacesAndInventsNothing) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  const auto at = rig.append_batches(1, 4, 1);
  rig.disk.misdirect_next_write(at[1].batch_sector * kBlockBytes);
  rig.append_batches(5, 1);
  rig.append_batches(6, 2);
  EXPECT_EQ(recovered(rig), "track 0: 2..2; track 0: 5..5|1 3 4 6 7");
}

TEST(Recovery, ADamagedTrackHeaderCostsNoBatch) {
  for (const std::uint64_t track : {0u, 1u, 2u}) {
    LogRig rig;
    fill_tracks(rig, 3);
    rig.append_batches(6, 1);
    rig.disk.flip_bit(byte_of_track(track) + 20, 5);
    EXPECT_EQ(recovered(rig), "|1 2 3 4 5 6") << "track " << track;
    rig.append_batches(7, 1);
    EXPECT_EQ(recovered(rig), "|1 2 3 4 5 6 7") << "track " << track;
  }
}

TEST(Recovery, TheYoungestTrackIsFoundBehindOneThatAFailedWriteLeftUnused) {
  LogRig rig;
  fill_tracks(rig, 1);
  rig.append_batches(2, 1, 1020);
  rig.disk.fail_writes(1, FaultyDisk::Remains::kNothing);
  rig.append_batches(3, 3, 300);  // track 1 fails and stays empty: they stand in track 2
  rig.disk.flip_bit(byte_of_track(2) + 20, 5);
  EXPECT_EQ(recovered(rig), "|1 2 3 4 5");
  EXPECT_EQ(rig.recovered.disks[0].tail.allocation, 3u);
}

TEST(Recovery, ATornFirstWriteOfATrackIsNoTrack) {
  LogRig rig;
  fill_tracks(rig, 1);
  const auto at = rig.append_batches(2, 2, 1020);
  ASSERT_EQ(at[1].batch_sector, byte_of_track(1) / kBlockBytes + 1);
  // The header's sectors were lost, the batch's were not.
  rig.disk.overwrite(byte_of_track(1), std::vector<std::byte>(kBlockBytes));
  EXPECT_EQ(recovered(rig), "|1 2");
  EXPECT_EQ(rig.recovered.disks[0].tail.allocation, 1u);
  rig.append_batches(10, 1, 1020);
  EXPECT_EQ(recovered(rig), "|1 2 10");
}

TEST(Recovery, ABatchWhoseTrackHeaderWasTornOffIsNeverFoundLater) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_batches(1, 1);
  const auto header = rig.disk.bytes({byte_of_track(0), kBlockBytes});
  rig.disk.overwrite(byte_of_track(0), std::vector<std::byte>(kBlockBytes));
  EXPECT_EQ(recovered(rig), "|");
  // The next write is torn the other way round: its header is there, its batch is not.
  rig.disk.overwrite(byte_of_track(0), header);
  EXPECT_EQ(recovered(rig), "|");
}

TEST(Recovery, ATornBatchIsNeverMadeWholeLater) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_batches(1, 1);
  const auto at = rig.append_batches(2, 1, 2);
  const ByteRange lost{(at[0].payload_sector() + 1) * kBlockBytes, kBlockBytes};
  const auto bytes = rig.disk.bytes(lost);
  rig.disk.overwrite(lost.offset, std::vector<std::byte>(kBlockBytes));
  EXPECT_EQ(recovered(rig), "|1");
  // The host writes the same again, and of that only the block that had been lost arrives.
  rig.disk.overwrite(lost.offset, bytes);
  EXPECT_EQ(recovered(rig), "|1");
}

// A write fails, and of the one after it, two tracks further on, only the batch arrives: nobody
// finds it. The next life fails in the same track and goes on behind it.
TEST(Recovery, ATrackThatAFailedWriteLeavesAsItWasGivesNothingBack) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_batches(1, 2);
  rig.writer->leave_tracks();
  rig.disk.fail_writes(1, FaultyDisk::Remains::kNothing);
  rig.append_batches(3, 1);  // in track 2
  rig.disk.overwrite(byte_of_track(2), std::vector<std::byte>(kBlockBytes));
  EXPECT_EQ(recovered(rig), "|1 2");
  rig.writer->leave_tracks();
  rig.append_batches(4, 2);  // in track 1
  rig.writer->leave_tracks();
  rig.disk.fail_writes(1, FaultyDisk::Remains::kNothing);
  rig.append_batches(6, 1);  // not in track 2 but in 3
  EXPECT_EQ(recovered(rig), "|1 2 4 5 6");
}

TEST(Recovery, AnUnbrokenLogIsNotWrittenTo) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_batches(1, 3);
  const std::size_t writes = rig.disk.writes().size();
  EXPECT_EQ(recovered(rig), "|1 2 3");
  EXPECT_EQ(rig.disk.writes().size(), writes);
}

TEST(Recovery, AHeaderOfAnImpossibleAllocationIsNone) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_batches(1, 3);
  Payload block = Payload::allocate(kBlockBytes);
  for (const std::uint64_t allocation : {std::uint64_t{2}, std::uint64_t{99}, UINT64_MAX}) {
    pack_track_header({.track = 0, .allocation = allocation, .first_batch = 1}, rig.superblock.log,
                      std::span<std::byte, kBlockBytes>(block.data(), kBlockBytes));
    rig.disk.overwrite(byte_of_track(0), block.bytes());
    EXPECT_EQ(recovered(rig), "|1 2 3");
  }
}

TEST(Recovery, ATrackWhoseHeaderAndFirstBatchAreDamagedIsReported) {
  for (const std::uint64_t track : {0u, 1u}) {
    LogRig rig;
    const auto at = fill_tracks(rig, 3);
    rig.disk.flip_bit(byte_of_track(track) + 20, 5);
    rig.disk.flip_bit(at[2 * track].batch_sector * kBlockBytes + 20, 5);
    EXPECT_EQ(recovered(rig), track == 0 ? "track 0: 1..1|2 3 4 5" : "track 1: 3..3|1 2 4 5");
  }
}

TEST(Recovery, TheYoungestTrackIsFoundBehindItsDamagedHeaderAndFirstBatch) {
  LogRig rig;
  const auto at = fill_tracks(rig, 2);
  const auto later = rig.append_batches(4, 2);
  rig.disk.flip_bit(byte_of_track(1) + 20, 5);
  rig.disk.flip_bit(at[2].batch_sector * kBlockBytes + 20, 5);
  EXPECT_EQ(recovered(rig), "track 1: 3..3|1 2 4 5");
  rig.append_batches(6, 1);
  EXPECT_EQ(recovered(rig), "track 1: 3..3|1 2 4 5 6");
}

TEST(Recovery, ALostFirstTrackIsReported) {
  LogRig rig;
  fill_tracks(rig, 2);
  rig.disk.overwrite(byte_of_track(0), std::vector<std::byte>(kTrackBytes));
  EXPECT_EQ(recovered(rig), "track 1: 1..2|3");
}

TEST(Recovery, ALostTrackInTheMiddleIsReported) {
  LogRig rig;
  fill_tracks(rig, 3);
  rig.disk.overwrite(byte_of_track(1), std::vector<std::byte>(kTrackBytes));
  EXPECT_EQ(recovered(rig), "track 0: 3..4|1 2 5");
}

TEST(Recovery, AStaleTrackIsNotTakenForTheLog) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_batches(1, 3);
  // The same track as an earlier log of the same identity would have left it, further on.
  LogRig older;
  ASSERT_TRUE(older.open());
  older.append_batches(101, 8);
  const auto stale = older.disk.bytes({byte_of_track(0), kTrackBytes});
  // Misplaced whole into the next track: every address in it is wrong.
  rig.disk.overwrite(byte_of_track(1), stale);
  EXPECT_EQ(recovered(rig), "|1 2 3");
  rig.append_batches(4, 1);
  EXPECT_EQ(recovered(rig), "|1 2 3 4");
}

TEST(Recovery, ADiskThatCannotBeReadIsAnErrorNotAnEnd) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  const auto at = rig.append_batches(1, 3);
  rig.close();
  const auto visit = [](const Record&, const LogLocation&) {};
  for (const std::uint64_t byte :
       {byte_of_track(0), byte_of_track(2), at[1].batch_sector * kBlockBytes,
        at[2].payload_sector() * kBlockBytes}) {
    rig.disk.fail_reads({byte, 512});
    const LogDiskRef ref{rig.disk, rig.superblock};
    const Result<Recovered> result = recover_log({&ref, 1}, 2, visit);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kIo);
  }
}

}  // namespace
}  // namespace mariner::logging
