#include "logging/superblock_store.h"

#include <gtest/gtest.h>

#include "logging/slot_store.h"
#include "logging/taken_tracks.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::FaultyDisk;
using test::kTrackBlocks;
using test::kTrackBytes;
using test::ManualExecutor;

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

TEST_F(SuperblockTest, TheListOfManyTracksTakesRoomFromThem) {
  // 116,000 tracks need 240 blocks of list, which with the 16 before it fill 1 MiB.
  const std::uint64_t tracks = 116'001;
  FaultyDisk exact(executor_, {.size_bytes = 2 * kReservedBytes + tracks * kTrackBytes});
  const Result<Superblock> formatted = format_log(exact, test::log_id(), 0, kTrackBytes, 1);
  ASSERT_TRUE(formatted.has_value());
  EXPECT_EQ(formatted->track_count, tracks);
  EXPECT_EQ(formatted->first_sector, 2 * kReservedBlocks);
  FaultyDisk shorter(executor_, {.size_bytes = exact.size_bytes() - kBlockBytes});
  const Result<Superblock> one_less = format_log(shorter, test::log_id(), 0, kTrackBytes, 1);
  ASSERT_TRUE(one_less.has_value());
  EXPECT_EQ(one_less->track_count, tracks - 1);
  EXPECT_EQ(*read_superblock(shorter), *one_less);
}

TEST_F(SuperblockTest, EveryTrackOfANewLogIsPlanned) {
  const Superblock superblock = *format_log(disk_, test::log_id(), 0, kTrackBytes, 1);
  const Result<TrackList> list = read_track_list(disk_, superblock);
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(list->oldest(), 1u);
  EXPECT_EQ(list->end(), 5u);
  EXPECT_EQ(list->track(4), 3u);
}

TEST_F(SuperblockTest, PagesOfTheListAreDurableTogether) {
  const Superblock superblock = *format_log(disk_, test::log_id(), 0, kTrackBytes, 1);
  TrackList list = *read_track_list(disk_, superblock);
  const auto writes = list.release(3);
  ASSERT_TRUE(write_list(disk_, superblock.log, writes).has_value());
  disk_.cut_power();
  disk_.restore_power();
  EXPECT_EQ(read_track_list(disk_, superblock)->oldest(), 3u);
  disk_.fail_writes(1, FaultyDisk::Remains::kNothing);
  EXPECT_EQ(write_list(disk_, superblock.log, writes).error().code, ErrorCode::kIo);
}

TEST_F(SuperblockTest, ADiskWithSlotsHasSeveralTimesMoreTracks) {
  const Result<Superblock> formatted = format_log(disk_, test::log_id(), 3, kTrackBytes, 77, true);
  ASSERT_TRUE(formatted.has_value());
  EXPECT_EQ(formatted->slot_count, 4u);
  EXPECT_EQ(formatted->track_count, 4 * kTracksPerSlot);
  EXPECT_LE(formatted->disk_bytes(), disk_.size_bytes());
  EXPECT_GT(formatted->disk_bytes() + kTrackBytes, disk_.size_bytes());
  disk_.cut_power();
  disk_.restore_power();
  EXPECT_EQ(*read_superblock(disk_), *formatted);
  EXPECT_EQ(read_slot_map(disk_, *formatted)->map, SlotMap(*formatted));
  EXPECT_EQ(read_track_list(disk_, *formatted)->end(), 4 * kTracksPerSlot + 1);
  FaultyDisk shorter(executor_, {.size_bytes = disk_.size_bytes() - kTrackBytes});
  EXPECT_EQ(format_log(shorter, test::log_id(), 3, kTrackBytes, 77, true).error().code,
            ErrorCode::kInvalidArgument);
}

TEST_F(SuperblockTest, ADiskWithSlotsThatShrankIsRefused) {
  Superblock superblock = *format_log(disk_, test::log_id(), 0, kTrackBytes, 1, true);
  superblock.slot_count = 5;
  ASSERT_TRUE(update_superblock(disk_, superblock).has_value());
  EXPECT_EQ(read_superblock(disk_).error().code, ErrorCode::kCorrupt);
}

TEST_F(SuperblockTest, TheMapOfManySlotsTakesRoomFromThem) {
  const std::uint64_t slots = 10'000;  // maps of 2 x 470 blocks, a list of 168
  FaultyDisk large(executor_, {.size_bytes = kReservedBytes + slots * kTrackBytes});
  const Result<Superblock> formatted = format_log(large, test::log_id(), 0, kTrackBytes, 1, true);
  ASSERT_TRUE(formatted.has_value());
  EXPECT_EQ(formatted->slot_count, slots - 1);
  EXPECT_EQ(formatted->first_sector, 5 * kReservedBlocks);
  EXPECT_EQ(*read_superblock(large), *formatted);
  EXPECT_TRUE(read_slot_map(large, *formatted).has_value());
}

// A disk that rotates: its tracks are where its owner says.
class RotatingSuperblockTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kTrack = 64u << 10;
  static LogShape shape() {
    LogShape shape;
    shape.log = test::log_id();
    shape.track_bytes = kTrack;
    shape.sector_bytes = 512;
    shape.first_sector = kReservedBytes / 512;
    shape.tracks = 10;
    shape.rotation = 8ms;
    return shape;
  }
  void refuses(const LogShape& shape, const char* what) {
    const Result<Superblock> result = format_log_disk(disk_, shape);
    ASSERT_FALSE(result.has_value()) << what;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument) << what;
    EXPECT_TRUE(disk_.writes().empty()) << what;
  }
  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = kReservedBytes + 10 * kTrack, .alignment = 512}};
};

TEST_F(RotatingSuperblockTest, KeepsItsShape) {
  const Result<Superblock> formatted = format_log_disk(disk_, shape());
  ASSERT_TRUE(formatted.has_value());
  EXPECT_TRUE(formatted->rotates());
  EXPECT_EQ(formatted->rotation, 8ms);
  EXPECT_EQ(formatted->track_sectors, 128u);
  EXPECT_EQ(formatted->track_count, 10u);
  EXPECT_EQ(formatted->track(9), (SectorRange{2048 + 9 * 128, 128}));
  EXPECT_EQ(*read_superblock(disk_), *formatted);
}

TEST_F(RotatingSuperblockTest, TracksOfItDoNotStandInSlots) {
  LogShape slotted = shape();
  slotted.slots = true;
  refuses(slotted, "slots");
  LogShape small = shape();
  small.slots = true;
  small.rotation = 0ms;
  small.track_bytes = kTrackBytes;
  refuses(small, "sectors of 512 bytes");
}

TEST_F(RotatingSuperblockTest, TracksNeedNotBeWholeBlocks) {
  LogShape odd = shape();
  odd.track_bytes = 129 * 512;
  odd.tracks = 9;
  odd.first_sector += 3;
  const Result<Superblock> formatted = format_log_disk(disk_, odd);
  ASSERT_TRUE(formatted.has_value());
  EXPECT_EQ(formatted->track_first_sector(1), 2048u + 3 + 129);
  EXPECT_EQ(*read_superblock(disk_), *formatted);
}

TEST_F(RotatingSuperblockTest, RefusesWhatDoesNotFit) {
  LogShape wrong = shape();
  wrong.track_bytes = kTrack - 512;
  refuses(wrong, "a track that is too short");
  wrong = shape();
  wrong.track_bytes = kTrack + 1;
  refuses(wrong, "half a sector");
  wrong = shape();
  wrong.first_sector -= 1;
  refuses(wrong, "tracks over the list");
  wrong = shape();
  wrong.tracks += 1;
  refuses(wrong, "tracks behind the end");
  wrong = shape();
  wrong.first_sector += 1;
  refuses(wrong, "a sector behind the end");
  wrong = shape();
  wrong.tracks = 3;
  refuses(wrong, "too few tracks");
}

// What comes out could never be read again, or is computed beyond 64 bits.
TEST_F(RotatingSuperblockTest, RefusesWhatTheFormatCannotSay) {
  for (const std::uint32_t sector_bytes : {0u, 1u, 520u, 1024u, 8192u}) {
    LogShape wrong = shape();
    wrong.sector_bytes = sector_bytes;
    refuses(wrong, "a sector of another length");
    wrong.rotation = {};
    wrong.track_bytes = kTrackBytesMin;
    refuses(wrong, "a sector of another length, not rotating");
  }
  for (const std::uint64_t huge : {UINT64_MAX, UINT64_MAX / 128, UINT64_MAX / 512 - 1}) {
    LogShape wrong = shape();
    wrong.first_sector = huge;
    refuses(wrong, "a place beyond every disk");
    wrong = shape();
    wrong.tracks = huge;
    refuses(wrong, "more tracks than every disk has");
  }
  LogShape wrong = shape();
  wrong.rotation = 24h;
  refuses(wrong, "a revolution that takes a day");
}

}  // namespace
}  // namespace mariner::logging
