#include "logging/slot_store.h"

#include <gtest/gtest.h>

#include "logging/superblock_store.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::FaultyDisk;
using test::kTrackBytes;
using test::ManualExecutor;

class SlotStoreTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = kReservedBytes + 5 * kTrackBytes;
  // The pack makes it longer than a sector, so that it can be torn.
  static SlotMap one_track(const Superblock& superblock, std::uint64_t track) {
    SlotMap map(superblock);
    map.assign(track, track % superblock.slot_count);
    map.assign(track + 10, 0);
    std::vector<std::uint64_t> tracks(200, PackPlace::kFreed);
    tracks[track * 20] = track + 10;
    map.add_pack({.id = 1,
                  .extents = {{1, 0, 4096}},
                  .table_at = 1000,
                  .table_bytes = 3096,
                  .tracks = std::move(tracks)});
    return map;
  }
  void damage(std::uint32_t copy) {
    disk_.flip_bit(superblock_.map_first_block(copy) * kBlockBytes + 40, 3);
  }
  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = kBytes}};
  const Superblock superblock_ = *format_log(disk_, test::log_id(), 0, kTrackBytes, 1, true);
};

TEST_F(SlotStoreTest, ANewLogHasAnEmptyMap) {
  const auto found = read_slot_map(disk_, superblock_);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->map, SlotMap(superblock_));
  EXPECT_EQ(found->generation, 1u);
}

TEST_F(SlotStoreTest, BothCopiesAreDurableAndEitherIsEnough) {
  const SlotMap map = one_track(superblock_, 7);
  ASSERT_TRUE(write_slot_map(disk_, superblock_, map, 5).has_value());
  disk_.cut_power();
  disk_.restore_power();
  for (const std::uint32_t copy : {0u, 1u}) {
    damage(copy);
    const auto found = read_slot_map(disk_, superblock_);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->map, map);
    EXPECT_EQ(found->generation, 5u);
    EXPECT_EQ(found->overwrite_first, copy) << "the other one is all there is";
    damage(copy);
    disk_.fail_reads({superblock_.map_first_block(copy) * kBlockBytes, 512});
    ASSERT_TRUE(read_slot_map(disk_, superblock_).has_value());
    EXPECT_EQ(read_slot_map(disk_, superblock_)->overwrite_first, copy);
    disk_.fail_reads({});
  }
}

TEST_F(SlotStoreTest, WithoutACopyTheErrorSaysWhatToDo) {
  damage(0);
  damage(1);
  const auto found = read_slot_map(disk_, superblock_);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(found.error().message.find("log disk 0: neither copy"), std::string::npos);
  EXPECT_NE(found.error().message.find("[log] lost"), std::string::npos);
}

TEST_F(SlotStoreTest, APowerCutInAWriteLeavesTheOldOrTheNewMap) {
  int olds = 0;
  int news = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    FaultyDisk disk(executor_, {.size_bytes = kBytes, .seed = seed});
    ASSERT_TRUE(format_log(disk, test::log_id(), 0, kTrackBytes, 1, true).has_value());
    const SlotMap before = one_track(superblock_, 3);
    const SlotMap after = one_track(superblock_, 4);
    ASSERT_TRUE(write_slot_map(disk, superblock_, before, 2).has_value());
    disk.cut_power_after(seed % 2);
    EXPECT_FALSE(write_slot_map(disk, superblock_, after, 3).has_value());
    disk.restore_power();
    const auto found = read_slot_map(disk, superblock_);
    ASSERT_TRUE(found.has_value()) << "seed " << seed;
    if (seed % 2 == 1) {
      ASSERT_EQ(found->map, after) << "copy 0 was whole; seed " << seed;
    }
    ASSERT_EQ(found->map, found->generation == 3 ? after : before) << "seed " << seed;
    ++(found->generation == 3 ? news : olds);
  }
  EXPECT_GT(olds, 0);
  EXPECT_GT(news, 100) << "a copy that was written whole before the power went counts, too";
}

TEST_F(SlotStoreTest, AFailedWriteIsTold) {
  for (const std::uint64_t writes : {0u, 1u}) {
    disk_.cut_power_after(writes);
    EXPECT_FALSE(write_slot_map(disk_, superblock_, one_track(superblock_, 2), 2).has_value());
    disk_.restore_power();
  }
}

}  // namespace
}  // namespace mariner::logging
