#include "logging/taken_tracks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "logging/superblock_store.h"
#include "tests/logging/array_rig.h"

namespace mariner::logging {
namespace {

using test::ArrayRig;
using test::FaultyDisk;
using test::kTrackBlocks;
using test::kTrackBytes;
using test::LogRig;
using test::ManualExecutor;
using test::record_of;

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
    if (track >= packed_from && track < packed_to) return Error{ErrorCode::kCorrupt, "a pack"};
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
  // Tracks in packs that are damaged.
  std::uint64_t packed_from = 0;
  std::uint64_t packed_to = 0;

 private:
  const Superblock superblock_;
  const std::uint64_t taken_;
};

TEST(TakenTracks, TheYoungestOfAMillionTracksIsFoundInThreeReadsAStep) {
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

// However many tracks of it the search meets in a row.
TEST(TakenTracks, ADamagedPackDoesNotHideWhatIsBehindIt) {
  constexpr std::uint64_t kTaken = 100;
  Superblock superblock;
  superblock.log = test::log_id();
  superblock.track_sectors = kTrackBlocks;
  superblock.track_count = 256;
  superblock.list_blocks = list_blocks_for(superblock.track_count);
  superblock.first_sector = reserved_blocks_for(superblock.list_blocks);
  const TrackList tracks(superblock);
  HeadersOnly disk(superblock, kTaken);
  for (disk.packed_from = 0; disk.packed_from < kTaken; ++disk.packed_from) {
    for (disk.packed_to = disk.packed_from; disk.packed_to < kTaken; ++disk.packed_to) {
      const Result<TakenEnd> found = find_taken_end(disk, superblock, tracks);
      ASSERT_TRUE(found.has_value());
      ASSERT_EQ(found->end, kTaken + 1) << disk.packed_from << " to " << disk.packed_to;
    }
  }
}

// "1:1 2:3": allocation and first batch of each.
std::string taken_text(Disk& disk, const Superblock& superblock) {
  const Result<TrackList> list = read_track_list(disk, superblock);
  if (!list) return to_string(list.error());
  const auto taken = taken_tracks(disk, superblock, *list);
  if (!taken) return to_string(taken.error());
  std::string text;
  for (const TrackHeader& header : *taken) {
    text += (text.empty() ? "" : " ") + std::to_string(header.allocation) + ":" +
            std::to_string(header.first_batch);
  }
  return text;
}

class TakenTracksTest : public ::testing::Test {
 protected:
  // Three tracks: two records of 1,020 blocks in each but the last, which has one.
  void SetUp() override {
    ASSERT_TRUE(rig_.open());
    at_ = rig_.append_batches(1, 5, 1020);
    rig_.close();
  }
  static std::uint64_t byte_of(std::uint64_t track) { return kReservedBytes + track * kTrackBytes; }
  std::string taken() { return taken_text(rig_.disk, rig_.superblock); }
  LogRig rig_;
  std::vector<LogLocation> at_;
};

TEST_F(TakenTracksTest, AreGivenInTheOrderOfTheirAllocations) { EXPECT_EQ(taken(), "1:1 2:3 3:5"); }

TEST_F(TakenTracksTest, ADamagedHeaderIsThatOfItsBatches) {
  for (const std::uint64_t track : {0u, 1u}) {
    rig_.disk.flip_bit(byte_of(track) + 20, 5);
    EXPECT_EQ(taken(), "1:1 2:3 3:5") << track;
    const auto header = header_of_taken(rig_.disk, rig_.superblock, {track + 1, track});
    ASSERT_TRUE(header && *header);
    EXPECT_EQ(**header, (TrackHeader{track, track + 1, 2 * track + 1}));
  }
  rig_.disk.flip_bit(byte_of(2) + 20, 5);
  EXPECT_EQ(taken(), "1:1 2:3") << "one write with one batch: it may have been torn";
}

TEST_F(TakenTracksTest, OneOfAnotherAllocationIsNotTaken) {
  const auto header = header_of_taken(rig_.disk, rig_.superblock, {7, 1});
  ASSERT_TRUE(header.has_value());
  EXPECT_FALSE(header->has_value());
  const auto unused = header_of_taken(rig_.disk, rig_.superblock, {4, 3});
  ASSERT_TRUE(unused.has_value());
  EXPECT_FALSE(unused->has_value());
}

TEST_F(TakenTracksTest, ALostListIsRebuiltFromTheTracksAndWrittenAgain) {
  rig_.disk.overwrite(
      kListFirstBlock * kBlockBytes,
      std::vector<std::byte>(std::size_t{rig_.superblock.list_blocks} * kBlockBytes));
  EXPECT_EQ(taken(), "1:1 2:3 3:5");
  const std::size_t writes = rig_.disk.writes().size();
  EXPECT_EQ(taken(), "1:1 2:3 3:5");
  EXPECT_EQ(rig_.disk.writes().size(), writes) << "the second time it is there";
}

// A log whose newest page of the list is damaged, while an older one stands that would pass for it
// but for the track that was taken last.
class LostPage {
 public:
  static constexpr std::uint64_t kTracks = 5;

  explicit LostPage(std::uint64_t seed)
      : disk_(executor_, {.size_bytes = kReservedBytes + kTracks * kTrackBytes, .seed = seed}),
        superblock_(*format_log(disk_, test::log_id(), 0, kTrackBytes, 1)),
        list_(*read_track_list(disk_, superblock_)) {
    const auto writes = list_.release(2);
    list_.committed();
    EXPECT_EQ(writes.size(), 1u);
    EXPECT_TRUE(write_list(disk_, superblock_.log, writes));
    std::vector<std::byte> header(kBlockBytes);
    for (std::uint64_t a = list_.oldest(); a < list_.end(); ++a) {
      const std::uint64_t track = *list_.track(a);
      pack_track_header({track, a, a}, superblock_.log, header);
      disk_.overwrite(superblock_.track_first_sector(track) * kBlockBytes, header);
    }
    disk_.flip_bit(writes[0].block * kBlockBytes + 100, 3);
  }

  // Recovers with a power cut in the write after so many others, and then without. Whether there
  // were so many.
  bool recover(std::uint64_t writes) {
    disk_.cut_power_after(writes);
    const bool cut = !read_track_list(disk_, superblock_);
    disk_.restore_power();
    disk_.cut_power_after(UINT64_MAX);
    const Result<TrackList> found = read_track_list(disk_, superblock_);
    EXPECT_EQ(found ? text_of(*found) : to_string(found.error()), text_of(list_));
    return cut;
  }

 private:
  // "2@1 3@2": allocations and their tracks.
  [[nodiscard]] std::string text_of(const TrackList& list) const {
    std::string text;
    for (const Allocated& a : allocated_from(list, list.oldest(), kTracks)) {
      text +=
          (text.empty() ? "" : " ") + std::to_string(a.allocation) + "@" + std::to_string(a.track);
    }
    return text;
  }

  ManualExecutor executor_;
  FaultyDisk disk_;
  const Superblock superblock_;
  TrackList list_;
};

TEST(TakenTracks, AListIsRebuiltWhereverThePowerGoes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::uint64_t writes = 0;
    while (LostPage(seed).recover(writes)) ++writes;
    EXPECT_GE(writes, list_blocks_for(LostPage::kTracks)) << "every block of the list is written";
  }
}

TEST_F(TakenTracksTest, AnErrorOfTheDiskIsAnError) {
  rig_.disk.fail_reads({byte_of(1), kBlockBytes});
  EXPECT_TRUE(taken().starts_with("io:")) << taken();
  const auto header = header_of_taken(rig_.disk, rig_.superblock, {2, 1});
  EXPECT_FALSE(header.has_value());
}

TEST_F(TakenTracksTest, AllocationsAreCountedFromAnyOne) {
  const TrackList list(rig_.superblock);
  const auto text = [&](std::uint64_t from, std::size_t count) {
    std::string out;
    for (const Allocated& a : allocated_from(list, from, count)) {
      out +=
          (out.empty() ? "" : " ") + std::to_string(a.allocation) + "@" + std::to_string(a.track);
    }
    return out;
  };
  EXPECT_EQ(text(1, 3), "1@0 2@1 3@2");
  EXPECT_EQ(text(5, 9), "5@4 6@5") << "no more are planned";
  EXPECT_EQ(text(7, 1), "");
  EXPECT_EQ(text(1, 0), "");
}

TEST(TakenTracks, OfADiskThatRotatesTheBatchesSayIt) {
  ArrayRig rig({.disks = 1, .tracks = 8, .rotating = true});
  ASSERT_TRUE(rig.open());
  std::string expected;
  std::uint64_t allocation = 0;
  for (std::uint64_t i = 1; i <= 60; ++i) {
    rig.append(record_of(1, i, 3));
    rig.executor.run_until_idle();
    const LogLocation at = *rig.outcomes.back().result;
    const std::uint64_t track = (at.batch_sector - rig.superblocks[0].first_sector) / 512;
    if (track + 1 == allocation) continue;
    allocation = track + 1;
    expected +=
        (expected.empty() ? "" : " ") + std::to_string(allocation) + ":" + std::to_string(i);
  }
  ASSERT_GT(allocation, 2u);
  EXPECT_EQ(taken_text(*rig.disks[0], rig.superblocks[0]), expected);
}

}  // namespace
}  // namespace mariner::logging
