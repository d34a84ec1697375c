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
using test::ManualExecutor;
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

class SuperblockTest : public ::testing::Test {
 protected:
  ErrorCode code_of(std::uint64_t track_bytes) {
    const Result<Superblock> result = format_log(disk_, test::log_id(), 0, track_bytes, 1);
    return result ? ErrorCode::kAborted : result.error().code;
  }
  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = kReservedBytes + 5 * kTrackBytes - 4096}};
};

TEST_F(SuperblockTest, FormatsWholeTracksOnly) {
  const Result<Superblock> formatted = format_log(disk_, test::log_id(), 3, kTrackBytes, 77);
  ASSERT_TRUE(formatted.has_value());
  EXPECT_EQ(formatted->track_count, 4u);
  EXPECT_EQ(formatted->track_sectors, kTrackBlocks);
  EXPECT_EQ(formatted->disk, 3);
  EXPECT_EQ(formatted->created_ns, 77u);
  EXPECT_EQ(formatted->initialised_tracks, 0u);
  EXPECT_EQ(*read_superblock(disk_), *formatted);
}

TEST_F(SuperblockTest, FormattingIsDurable) {
  ASSERT_TRUE(format_log(disk_, test::log_id(), 3, kTrackBytes, 77).has_value());
  disk_.cut_power();
  disk_.restore_power();
  EXPECT_TRUE(read_superblock(disk_).has_value());
}

TEST_F(SuperblockTest, RefusesTracksOfAWrongLengthAndTooFew) {
  EXPECT_EQ(code_of(kTrackBytesMin - kBlockBytes), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(kTrackBytesMin + 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(std::uint64_t{kTrackBytesMax} + kBlockBytes), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(2 * kTrackBytes), ErrorCode::kInvalidArgument) << "room for two only";
}

TEST_F(SuperblockTest, AnEmptyDiskHoldsNoLogAndGarbageADamagedOne) {
  EXPECT_EQ(read_superblock(disk_).error().code, ErrorCode::kNotFound);
  disk_.flip_bit(100, 0);
  EXPECT_EQ(read_superblock(disk_).error().code, ErrorCode::kCorrupt);
}

TEST_F(SuperblockTest, TheNewerWholeCopyCounts) {
  Superblock superblock = *format_log(disk_, test::log_id(), 0, kTrackBytes, 1);
  const std::uint64_t generation = superblock.generation;
  superblock.initialised_tracks = 2;
  ASSERT_TRUE(update_superblock(disk_, superblock).has_value());
  EXPECT_EQ(superblock.generation, generation + 1);
  EXPECT_EQ(read_superblock(disk_)->initialised_tracks, 2u);
  disk_.flip_bit((superblock.generation % 2) * kSuperblockStride * kBlockBytes + 66, 0);
  EXPECT_EQ(read_superblock(disk_)->initialised_tracks, 0u);
  disk_.flip_bit(((superblock.generation + 1) % 2) * kSuperblockStride * kBlockBytes + 66, 0);
  EXPECT_EQ(read_superblock(disk_).error().code, ErrorCode::kCorrupt);
}

TEST_F(SuperblockTest, AnUnreadableCopyDoesNotHideTheOther) {
  ASSERT_TRUE(format_log(disk_, test::log_id(), 0, kTrackBytes, 1).has_value());
  for (const std::uint64_t copy : {0u, 1u}) {
    disk_.fail_reads({copy * kSuperblockStride * kBlockBytes, 512});
    EXPECT_TRUE(read_superblock(disk_).has_value());
  }
  disk_.fail_reads({0, (kSuperblockStride + 1) * kBlockBytes});
  EXPECT_EQ(read_superblock(disk_).error().code, ErrorCode::kIo);
}

TEST_F(SuperblockTest, AFailedUpdateLeavesTheOtherCopyAlone) {
  Superblock superblock = *format_log(disk_, test::log_id(), 0, kTrackBytes, 1);
  const auto other =
      disk_.bytes({(superblock.generation % 2) * kSuperblockStride * kBlockBytes, kBlockBytes});
  disk_.fail_writes(2, FaultyDisk::Remains::kSomeSectors);
  EXPECT_FALSE(update_superblock(disk_, superblock).has_value());
  EXPECT_FALSE(update_superblock(disk_, superblock).has_value());
  EXPECT_EQ(
      disk_.bytes({(superblock.generation % 2) * kSuperblockStride * kBlockBytes, kBlockBytes}),
      other);
  EXPECT_TRUE(read_superblock(disk_).has_value());
}

TEST_F(SuperblockTest, UpdatesSurvivePowerCuts) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    FaultyDisk disk(executor_, {.size_bytes = disk_.size_bytes(), .seed = seed});
    Superblock superblock = *format_log(disk, test::log_id(), 0, kTrackBytes, 1);
    for (int i = 0; i < 4; ++i) {
      Superblock next = superblock;
      ++next.generation;
      Payload block = Payload::allocate(kBlockBytes);
      pack_superblock(next, std::span<std::byte, kBlockBytes>(block.data(), kBlockBytes));
      disk.async_write((next.generation % 2) * kSuperblockStride * kBlockBytes, {block.bytes()},
                       Durability::kDurable, [](const Result<void>&) {});
      disk.cut_power();
      executor_.run_until_idle();
      disk.restore_power();
      const Result<Superblock> found = read_superblock(disk);
      ASSERT_TRUE(found.has_value()) << "seed " << seed;
      ASSERT_TRUE(found->generation == next.generation ||
                  found->generation == superblock.generation)
          << "seed " << seed;
      superblock = *found;
    }
  }
}

TEST_F(SuperblockTest, ADiskThatShrankIsRefused) {
  Superblock superblock = *format_log(disk_, test::log_id(), 0, kTrackBytes, 1);
  superblock.track_count = 5;
  superblock.list_blocks = list_blocks_for(5);
  ASSERT_TRUE(update_superblock(disk_, superblock).has_value());
  EXPECT_EQ(read_superblock(disk_).error().code, ErrorCode::kCorrupt);
}

// A log of many tracks that exists only as far as it is read: the headers of the taken ones.
class HeadersOnly final : public Disk {
 public:
  HeadersOnly(const Superblock& superblock, std::uint64_t taken)
      : superblock_(superblock), taken_(taken) {}
  [[nodiscard]] std::uint64_t size_bytes() const override {
    return superblock_.end_sector() * kBlockBytes;
  }
  [[nodiscard]] std::uint32_t alignment() const override { return kBlockBytes; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override {
    std::memset(to.data(), 0, to.size());
    const std::uint64_t block = offset / kBlockBytes - superblock_.track_first_sector(0);
    const std::uint64_t track = block / superblock_.track_sectors;
    if (block % superblock_.track_sectors != 0 || track >= taken_ || track == damaged) return {};
    pack_track_header({track, track + 1, track * 100 + 1}, superblock_.log,
                      std::span<std::byte, kBlockBytes>(to.data(), kBlockBytes));
    return {};
  }
  Result<void> write(std::uint64_t, std::span<const ConstBytes>, Durability) override {
    return Error{ErrorCode::kIo, "read-only"};
  }
  Result<void> flush() override { return {}; }
  Result<void> discard(ByteRange) override { return {}; }
  void async_read(std::uint64_t, std::span<std::byte>, Completion) override {}
  void async_write(std::uint64_t, std::vector<ConstBytes>, Durability, Completion) override {}

  std::uint64_t damaged = UINT64_MAX;

 private:
  const Superblock superblock_;
  const std::uint64_t taken_;
};

TEST(Recovery, TheYoungestOfAMillionTracksIsFoundInThreeReadsAStep) {
  Superblock superblock;
  superblock.log = test::log_id();
  superblock.track_sectors = kTrackBlocks;
  superblock.track_count = 1'000'000;
  superblock.list_blocks = list_blocks_for(superblock.track_count);
  superblock.first_sector = reserved_blocks_for(superblock.list_blocks);
  const TrackList tracks(superblock);
  for (const std::uint64_t taken : {0u, 1u, 2u, 77'777u, 524'288u, 999'999u, 1'000'000u}) {
    HeadersOnly disk(superblock, taken);
    for (const std::uint64_t damaged :
         {UINT64_MAX, std::uint64_t{taken / 2}, std::uint64_t{taken} - 2}) {
      if (damaged != UINT64_MAX && damaged + 1 >= taken) continue;  // nothing behind it to tell
      disk.damaged = damaged;
      const Result<TakenEnd> found = find_taken_end(disk, superblock, tracks);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->end, taken + 1) << taken << " taken, " << damaged << " damaged";
      EXPECT_LE(found->track_reads, 60u);
    }
  }
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
